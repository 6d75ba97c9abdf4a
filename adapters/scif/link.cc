// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/link.hpp"

#include <cstring>

namespace wherry::scif {
namespace {

constexpr std::size_t kSpacePlace = layout::kScifPageBytes + layout::kScifQueueBytes;
constexpr std::size_t kSegmentBytes = kSpacePlace + window::Space::kBytes;

layout::ScifPage& page(std::byte* segment) { return *reinterpret_cast<layout::ScifPage*>(segment); }

}  // namespace

fabric::Offer offer() {
  fabric::Offer offer{.segment_bytes = kSegmentBytes, .exposes = true, .bells = false};
  std::memcpy(offer.greeting.data(), &layout::kScifGreeting, sizeof layout::kScifGreeting);
  return offer;
}

bool fits(const fabric::Greeting& greeting, std::size_t segment_bytes) {
  return std::memcmp(greeting.data(), &layout::kScifGreeting, sizeof layout::kScifGreeting) == 0 &&
         segment_bytes == kSegmentBytes;
}

Link::Link(EndpointEntry& entry, EndpointWaiter& waiter, int fd, std::unique_ptr<fabric::Connection> joined)
    : connection(std::move(joined)),
      receive_queue(waiter, entry.receiving, *connection, page(connection->segment().data()), page(connection->map()),
                    connection->segment().data() + layout::kScifPageBytes),
      send_queue(waiter, entry.sending, page(connection->segment().data()), page(connection->map()),
                 connection->map() + layout::kScifPageBytes),
      space(*connection, kSpacePlace, kSpacePlace, window::Space::EndNotice::by_caller) {
  show(fd, waiter.socket());
}

void Link::show(int fd, std::uint64_t inode) {
  if (origin.inherited()) return;
  layout::ScifSocket& shown = page(connection->map()).socket;
  shown.descriptor.store(static_cast<std::uint64_t>(fd), std::memory_order_relaxed);
  // SCIF-SOCKET release: the number before; pairs with the acquire in borrow().
  shown.inode.store(inode, std::memory_order_release);
}

}  // namespace wherry::scif
