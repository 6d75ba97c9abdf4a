// SPDX-License-Identifier: Apache-2.0
// The functions that reach the peer's windows, and their fences. They check arguments and states as SCIF does;
// window::Space does the work. If the memory is mapped, transfers and signals make no system call but a check of the
// descriptor every 20 us or so.
#include <cstddef>
#include <optional>
#include <span>

#include "adapters/scif/calls.hpp"

using namespace wherry;
using namespace wherry::scif;

namespace {

constexpr int kKnownFlags = SCIF_RMA_USECPU | SCIF_RMA_USECACHE | SCIF_RMA_SYNC | SCIF_RMA_ORDERED;

/// Checks what all RMA calls check. `body` returns an errno value.
template <class Body>
int transfer(scif_epd_t epd, std::size_t bytes, int flags, Body&& body) noexcept {
  return with_endpoint_unasked(epd, [&](Endpoint& endpoint) {
    if (bytes == 0 || (flags != 0 && (flags & kKnownFlags) == 0)) return -EINVAL;
    Link* link = nullptr;
    if (const int error = reachable_lately(endpoint, epd, link); error != 0) return error;
    const window::RmaOptions options{.complete = (flags & (SCIF_RMA_SYNC | SCIF_RMA_USECPU)) != 0,
                                     .ordered = (flags & SCIF_RMA_ORDERED) != 0};
    return result_of(endpoint, epd, body(link->space, options));
  });
}

/// Returns the program's number of a mark: the lower 31 bits of the count of RMA calls. Bit 31 is set for the peer's
/// calls.
constexpr std::uint32_t kPeersMark = 0x80000000U;

int number_of(const window::Mark& mark) {
  return static_cast<int>((static_cast<std::uint32_t>(mark.calls) & ~kPeersMark) | (mark.of_peer ? kPeersMark : 0));
}

/// Returns the latest mark with that number, or nothing if the number was not given out lately.
std::optional<window::Mark> mark_of(const window::Space& space, int number) {
  const auto bits = static_cast<std::uint32_t>(number);
  window::Mark mark = space.mark((bits & kPeersMark) != 0);
  const std::uint32_t ago = (static_cast<std::uint32_t>(mark.calls) - bits) & ~kPeersMark;
  if (ago > mark.calls || ago > kPeersMark / 2) return std::nullopt;
  mark.calls -= ago;
  return mark;
}

bool one_initiator(int flags) { return flags == SCIF_FENCE_INIT_SELF || flags == SCIF_FENCE_INIT_PEER; }

}  // namespace

int scif_readfrom(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags) {
  return transfer(epd, len, rma_flags, [&](window::Space& space, window::RmaOptions options) {
    return space.read_from(static_cast<std::uint64_t>(loffset), len, static_cast<std::uint64_t>(roffset), options);
  });
}

int scif_writeto(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags) {
  return transfer(epd, len, rma_flags, [&](window::Space& space, window::RmaOptions options) {
    return space.write_to(static_cast<std::uint64_t>(loffset), len, static_cast<std::uint64_t>(roffset), options);
  });
}

int scif_vreadfrom(scif_epd_t epd, void* addr, size_t len, off_t roffset, int rma_flags) {
  return transfer(epd, len, rma_flags, [&](window::Space& space, window::RmaOptions options) {
    return space.read_from(std::span(static_cast<std::byte*>(addr), len), static_cast<std::uint64_t>(roffset), options);
  });
}

int scif_vwriteto(scif_epd_t epd, void* addr, size_t len, off_t roffset, int rma_flags) {
  return transfer(epd, len, rma_flags, [&](window::Space& space, window::RmaOptions options) {
    const std::span source(static_cast<const std::byte*>(addr), len);
    return space.write_to(source, static_cast<std::uint64_t>(roffset), options);
  });
}

int scif_fence_mark(scif_epd_t epd, int flags, int* mark) {
  return with_endpoint(epd, [&](Endpoint& endpoint) {
    if (!one_initiator(flags)) return -EINVAL;
    if (!is_writable(mark, 1)) return -EFAULT;
    Link* link = nullptr;
    if (const int error = reachable(endpoint, epd, link); error != 0) return error;
    *mark = number_of(link->space.mark(flags == SCIF_FENCE_INIT_PEER));
    return 0;
  });
}

int scif_fence_wait(scif_epd_t epd, int mark) {
  return with_endpoint(epd, [&](Endpoint& endpoint) {
    Link* link = nullptr;
    if (const int error = reachable(endpoint, epd, link); error != 0) return error;
    const auto known = mark_of(link->space, mark);
    return known ? -waited(link->space.wait(*known, window::Space::kFenceTimeout, ended(endpoint, epd))) : -EINVAL;
  });
}

int scif_fence_signal(scif_epd_t epd, off_t loff, uint64_t lval, off_t roff, uint64_t rval, int flags) {
  constexpr int kSides = SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE;
  return with_endpoint_unasked(epd, [&](Endpoint& endpoint) {
    if (!one_initiator(flags & ~kSides) || (flags & kSides) == 0) return -EINVAL;
    std::optional<window::Signal> local;
    std::optional<window::Signal> remote;
    if ((flags & SCIF_SIGNAL_LOCAL) != 0) local = {static_cast<std::uint64_t>(loff), lval};
    if ((flags & SCIF_SIGNAL_REMOTE) != 0) remote = {static_cast<std::uint64_t>(roff), rval};
    Link* link = nullptr;
    if (const int error = reachable_lately(endpoint, epd, link); error != 0) return error;
    return result_of(endpoint, epd,
                     link->space.signal((flags & SCIF_FENCE_INIT_PEER) != 0, local, remote,
                                        window::Space::kFenceTimeout, ended(endpoint, epd)));
  });
}
