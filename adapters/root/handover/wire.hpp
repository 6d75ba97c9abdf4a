// SPDX-License-Identifier: Apache-2.0
// Sends and parses the messages that adapters/root/layout/wire.hpp describes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <wherry/framed.hpp>

#include "adapters/root/layout/wire.hpp"

namespace wherry::root {

using layout::RootKind;
using layout::RootRecord;

/// Bytes of a ring: more than all messages that can be in flight, with the longest texts.
inline constexpr std::size_t kControlRing = std::size_t{64} << 10;

struct ControlMessage {
  RootRecord record{};
  std::string text;

  [[nodiscard]] RootKind kind() const { return RootKind{record.kind}; }
};

/// Copies the message out of the ring. Empty if its size is invalid.
std::optional<ControlMessage> parse(std::span<const std::byte> message);

/// Blocks while the ring is full.
[[nodiscard]] Result send(FramedStream& to, const RootRecord& record, std::string_view text = {});
/// Does not block; would_block if the ring is full.
[[nodiscard]] Result try_send(FramedStream& to, const RootRecord& record, std::string_view text = {});

constexpr RootRecord record_of(RootKind kind, std::uint64_t value = 0, std::uint64_t bytes = 0) {
  return {.kind = static_cast<std::uint32_t>(kind), .flags = 0, .value = value, .bytes = bytes, .place = 0, .id = {}};
}

}  // namespace wherry::root
