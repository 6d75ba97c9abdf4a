// SPDX-License-Identifier: Apache-2.0
// How messages lie in the ring of a stream (FramedStream). A frame is a word, then the message, and ends at a multiple
// of 8:
//
//   0         4        8                     8 + bytes      the next frame
//   +---------+--------+---------------------+--------------+
//   | bytes   | kind   | message             | 0 to 7 bytes |
//   +---------+--------+---------------------+--------------+
//     all W: peer's sender, before the tail that covers the whole frame
//
// A frame never crosses the ring's end: where a message finds too little room before it, a filler takes up the rest.
// Frames are published whole. Where frames begin at a position that is no multiple of 8 (bytes went before), up to 7
// bytes are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

enum class FrameKind : std::uint32_t { message = 1, filler = 2 };

struct FrameHeader {
  std::uint32_t bytes;  // behind this header, without the bytes that round it up
  FrameKind kind;
};
static_assert(std::is_standard_layout_v<FrameHeader> && std::is_trivially_copyable_v<FrameHeader>);
static_assert(sizeof(FrameHeader) == 8 && offsetof(FrameHeader, bytes) == 0 && offsetof(FrameHeader, kind) == 4);

inline constexpr std::size_t kFrameAlignment = 8;
static_assert(kFrameAlignment >= sizeof(FrameHeader), "what is left before the ring's end has room for a filler");

/// Bytes that the frame of a message takes up in the ring.
constexpr std::size_t frame_bytes(std::size_t message) {
  return sizeof(FrameHeader) + (message + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

/// The largest message for a ring of that capacity: its frame takes up half. A sender can always come by so much space,
/// whatever the receiver keeps to itself (ring::Consumer::credit_due).
constexpr std::size_t max_message(std::size_t capacity) { return capacity / 2 - sizeof(FrameHeader); }

}  // namespace wherry::layout
