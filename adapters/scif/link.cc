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

Link::Link(Line& line, std::unique_ptr<fabric::Connection> joined)
    : connection(std::move(joined)),
      inlet(line, page(connection->segment().data()), page(connection->map()),
            connection->segment().data() + layout::kScifPageBytes),
      outlet(line, page(connection->segment().data()), page(connection->map()),
             connection->map() + layout::kScifPageBytes),
      space(*connection, kSpacePlace) {}

}  // namespace wherry::scif
