// SPDX-License-Identifier: Apache-2.0
// The functions on registered memory. They check arguments and states as SCIF does; window::Space does the work.
#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <optional>
#include <span>

#include "adapters/scif/calls.hpp"
#include "memory/populate.hpp"

using namespace wherry;
using namespace wherry::scif;

namespace {

/// Whether the flags are one or both of the two, and nothing else.
bool is_protection(int flags) { return flags != 0 && (flags & ~(SCIF_PROT_READ | SCIF_PROT_WRITE)) == 0; }

bool whole_pages(std::uint64_t value) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return value % page == 0;
}

/// Whether [offset, offset + bytes) consists of whole pages and does not wrap around.
bool is_page_range(off_t offset, std::size_t bytes) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  return offset >= 0 && bytes != 0 && whole_pages(static_cast<std::uint64_t>(offset)) && whole_pages(bytes) &&
         bytes <= kMost - static_cast<std::uint64_t>(offset);
}

/// Makes the window writable if the memory is. The driver does so, because it pins pages for writing if it can. Returns
/// an errno value.
int upgrade(std::span<std::byte> memory, int& protection) {
  if (memory::is_there(memory, memory::Access::write)) {
    protection |= SCIF_PROT_WRITE;
  } else if ((protection & SCIF_PROT_WRITE) != 0) {
    return EFAULT;
  }
  return 0;
}

/// For functions with another result than a status: body(endpoint, link, result) returns 0 or a negative errno value.
template <class Result, class Body>
Result on_link(scif_epd_t epd, Result failure, Body&& body) noexcept {
  Result result = failure;
  const int status = with_endpoint(epd, [&](Endpoint& endpoint) {
    Link* link = nullptr;
    if (const int error = reachable(endpoint, epd, link); error != 0) return error;
    return body(endpoint, *link, result);
  });
  return status == 0 ? result : failure;
}

}  // namespace

off_t scif_register(scif_epd_t epd, void* addr, size_t len, off_t offset, int prot_flags, int map_flags) {
  const bool fixed = (map_flags & SCIF_MAP_FIXED) != 0;
  const bool good = (map_flags & ~SCIF_MAP_FIXED) == 0 && is_protection(prot_flags) &&
                    (!fixed || is_page_range(offset, len)) && len != 0 && whole_pages(len) &&
                    whole_pages(reinterpret_cast<std::uintptr_t>(addr));
  return on_link(epd, SCIF_REGISTER_FAILED, [&](Endpoint& endpoint, Link& link, off_t& result) {
    if (!good) return -EINVAL;
    const std::span memory(static_cast<std::byte*>(addr), len);
    int protection = prot_flags;
    if (const int error = upgrade(memory, protection); error != 0) return -error;
    const auto where = fixed ? std::optional(static_cast<std::uint64_t>(offset)) : std::nullopt;
    const auto registered =
        link.space.register_memory(memory, where, protection, window::Space::kFenceTimeout, ended(endpoint, epd));
    result = static_cast<off_t>(registered.offset);
    return registered.error == EBUSY ? -ENODEV : -waited(registered.error);
  });
}

int scif_unregister(scif_epd_t epd, off_t offset, size_t len) {
  return on_link(epd, -1, [&](Endpoint&, Link& link, int& result) {
    if (!is_page_range(offset, len)) return -EINVAL;
    const int error = link.space.unregister(static_cast<std::uint64_t>(offset), len);
    result = 0;
    return error == ENXIO ? 0 : -error;  // the driver does not report an unregistered range
  });
}

void* scif_mmap(void* addr, size_t len, int prot_flags, int map_flags, scif_epd_t epd, off_t offset) {
  const bool fixed = (map_flags & SCIF_MAP_FIXED) != 0;
  const bool good = (map_flags & ~SCIF_MAP_FIXED) == 0 && is_protection(prot_flags) && is_page_range(offset, len) &&
                    (!fixed || whole_pages(reinterpret_cast<std::uintptr_t>(addr)));
  return on_link(epd, SCIF_MMAP_FAILED, [&](Endpoint& endpoint, Link& link, void*& result) {
    if (!good) return -EINVAL;
    auto* where = fixed ? static_cast<std::byte*>(addr) : nullptr;
    const auto mapped = link.space.map(where, static_cast<std::uint64_t>(offset), len, prot_flags);
    result = mapped.start;
    return result_of(endpoint, epd, mapped.error);
  });
}

int scif_munmap(void* addr, size_t len) {
  return guarded([&] { return window::unmap(addr, len) == 0 ? 0 : -errno; });
}
