// SPDX-License-Identifier: Apache-2.0
// What the window suites share: two connected spaces, and memory to register.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <optional>

#include "tests/conformance/fabric_pair.hpp"
#include "window/space.hpp"

namespace wherry::conformance {

using window::RmaOptions;
using window::Space;

inline constexpr int kRead = PROT_READ;
inline constexpr int kWrite = PROT_WRITE;
inline constexpr int kReadWrite = PROT_READ | PROT_WRITE;

/// The spaces may begin anywhere in a segment: here behind a page of something else.
inline constexpr std::size_t kSpacePlace = kPage;
inline const Offer kWindowOffer{.segment_bytes = kSpacePlace + Space::kBytes, .exposes = true};

/// Two sides of a connection, "near" (the connector) and "far".
struct SpacePair {
  explicit SpacePair(Ends connected)
      : ends(std::move(connected)), near(*ends.connector, kSpacePlace), far(*ends.acceptor, kSpacePlace) {}

  Ends ends;
  Space near;
  Space far;
};

class WindowTest : public FabricTest {
 protected:
  [[nodiscard]] std::unique_ptr<SpacePair> spaces() const {
    return std::make_unique<SpacePair>(connect_pair(kWindowOffer, kWindowOffer));
  }
};

/// Registers, and says where. Throws std::system_error if it cannot.
std::uint64_t registered(Space& space, std::span<std::byte> memory, int protection = kReadWrite,
                         std::optional<std::uint64_t> offset = {});

}  // namespace wherry::conformance
