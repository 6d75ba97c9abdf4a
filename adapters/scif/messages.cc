// SPDX-License-Identifier: Apache-2.0
// scif_send and scif_recv. They do not ask the kernel about the descriptor each time. If the program has closed it with
// close(2), they notice that when they look for the peer's end.
#include <algorithm>
#include <cstddef>
#include <span>

#include "adapters/scif/calls.hpp"
#include "adapters/scif/layout/page.hpp"

using namespace wherry;
using namespace wherry::scif;

namespace {

constexpr int kBlock = SCIF_SEND_BLOCK;
static_assert(SCIF_RECV_BLOCK == kBlock);

/// Checks the arguments of both directions. Returns 1 to go on, else the result.
int check(const void* message, int bytes, int flags) {
  if (bytes == 0) return 0;
  if (bytes < 0 || (flags != 0 && (flags & kBlock) == 0)) return -EINVAL;
  return message == nullptr ? -EFAULT : 1;
}

/// A short count is a result, not an error.
int result_of(const Moved& moved) { return moved.bytes != 0 ? static_cast<int>(moved.bytes) : -moved.error; }

/// Fast path: most messages need not wait, and take only one lock of the entry. `move` returns whether that was enough.
/// Keeps errno.
template <class Move>
bool at_once(scif_epd_t epd, SpinLock EndpointEntry::* direction, Move&& move) {
  EndpointEntry* entry = entry_of(epd);
  if (entry == nullptr || has_duplicates()) return false;
  const int before = errno;
  const std::lock_guard lock(entry->*direction);
  Link* link = entry->endpoint == nullptr || entry_of(epd) != entry ? nullptr : entry->endpoint->known_link();
  const bool done = link != nullptr && move(*link);
  errno = before;
  return done;
}

template <class Move>
int with_link(scif_epd_t epd, const void* message, int bytes, int flags, Move&& move) {
  const int go_on = check(message, bytes, flags);
  return with_endpoint_unasked(epd, [&](Endpoint& endpoint) {
    if (go_on != 1) return go_on;
    Link* link = endpoint.link(epd);
    return link == nullptr ? -ENOTCONN : result_of(move(*link));
  });
}

}  // namespace

int scif_send(scif_epd_t epd, void* msg, int len, int flags) {
  const bool block = (flags & kBlock) != 0;
  const std::span bytes(static_cast<const std::byte*>(msg), static_cast<std::size_t>(len));
  Moved moved;
  if (check(msg, len, flags) == 1 &&
      at_once(epd, &EndpointEntry::sending,
              [&](Link& link) { return link.send_queue.send_at_once(epd, bytes, block, moved); }) &&
      moved.error == 0) {
    return static_cast<int>(moved.bytes);
  }
  return with_link(epd, msg, len, flags, [&](Link& link) { return link.send_queue.send(epd, bytes, block); });
}

int scif_recv(scif_epd_t epd, void* msg, int len, int flags) {
  const bool block = (flags & kBlock) != 0;
  const int most = block ? len : std::min(len, static_cast<int>(layout::kScifQueueMost));
  const std::span buffer(static_cast<std::byte*>(msg), static_cast<std::size_t>(most));
  Moved moved;
  if (check(msg, len, flags) == 1 && at_once(epd, &EndpointEntry::receiving, [&](Link& link) {
        return link.receive_queue.receive_at_once(epd, buffer, block, moved);
      })) {
    return static_cast<int>(moved.bytes);
  }
  return with_link(epd, msg, len, flags, [&](Link& link) { return link.receive_queue.receive(epd, buffer, block); });
}
