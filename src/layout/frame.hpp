// SPDX-License-Identifier: Apache-2.0
// The frames of a FramedStream in the ring of its stream. A frame is a header of 8 bytes, the message, and padding to a
// multiple of 8:
//
//   0         4        8                     8 + bytes      the next frame
//   +---------+--------+---------------------+--------------+
//   | bytes   | kind   | message             | 0 to 7 bytes |
//   +---------+--------+---------------------+--------------+
//     all W: peer's sender, before the tail that covers the whole frame
//
// A frame never crosses the ring's end. If a frame does not fit before the end, a filler frame takes up the rest.
// Frames are published whole. If the first frame would begin at an unaligned position, because plain bytes went before
// it, up to 7 bytes are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

enum class FrameKind : std::uint32_t { message = 1, filler = 2 };

struct FrameHeader {
  std::uint32_t bytes;  // behind this header, without the padding
  FrameKind kind;
};
static_assert(std::is_standard_layout_v<FrameHeader> && std::is_trivially_copyable_v<FrameHeader>);
static_assert(sizeof(FrameHeader) == 8 && offsetof(FrameHeader, bytes) == 0 && offsetof(FrameHeader, kind) == 4);

inline constexpr std::size_t kFrameAlignment = 8;
static_assert(kFrameAlignment >= sizeof(FrameHeader), "what is left before the ring's end has room for a filler");

/// Returns the bytes that the frame of a message takes up in the ring.
constexpr std::size_t frame_bytes(std::size_t message) {
  return sizeof(FrameHeader) + (message + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

/// Returns the largest message for a ring of that capacity. Its frame takes up half the ring, since the sender always
/// gets that much space in the end: the receiver holds back less than a quarter (ring::Consumer::credit_due).
constexpr std::size_t max_message(std::size_t capacity) { return capacity / 2 - sizeof(FrameHeader); }

}  // namespace wherry::layout
