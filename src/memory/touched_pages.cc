// SPDX-License-Identifier: Apache-2.0
#include "memory/touched_pages.hpp"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace wherry::memory {
namespace {

/// Bits of an entry of /proc/PID/pagemap: present, swapped out, of a file, guard region.
constexpr std::uint64_t kTouched = std::uint64_t{0b1110'0100} << 56;
constexpr std::uint64_t kSwapped = std::uint64_t{0b0100'0000} << 56;

bool some_page_is_swapped_out() {
  struct sysinfo told{};
  return ::sysinfo(&told) != 0 || told.freeswap != told.totalswap;
}

}  // namespace

TouchedPages::TouchedPages() : pagemap_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

std::bitset<TouchedPages::kMost> TouchedPages::in(std::span<const std::byte> memory, bool held) const noexcept {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::bitset<kMost> touched;
  std::array<std::uint64_t, kMost> entries{};
  const std::size_t count = std::min(kMost, memory.size() / page);
  const std::size_t bytes = count * sizeof entries[0];
  const auto place = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory.data()) / page * sizeof entries[0]);
  if (!pagemap_.valid() || ::pread(pagemap_.get(), entries.data(), bytes, place) != static_cast<ssize_t>(bytes)) {
    return touched.set();
  }
  const std::uint64_t wanted = held && !some_page_is_swapped_out() ? kTouched & ~kSwapped : kTouched;
  for (std::size_t i = 0; i < count; ++i) touched.set(i, (entries[i] & wanted) != 0);
  return touched;
}

}  // namespace wherry::memory
