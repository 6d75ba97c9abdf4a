// SPDX-License-Identifier: Apache-2.0
#include "stream/frame_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "arch/shared_copy.hpp"

namespace wherry::stream {
namespace {

using layout::FrameHeader;
using layout::FrameKind;

/// Space reserved at once while messages are held, and the most that is held before it is published: the receiver
/// copies out while more is written. Small rings are divided into four pieces.
constexpr std::size_t kMostHeld = std::size_t{64} << 10;

void write_header(std::byte* place, std::size_t bytes, FrameKind kind) {
  const FrameHeader header{static_cast<std::uint32_t>(bytes), kind};
  std::memcpy(place, &header, sizeof header);
}

std::size_t size_of(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

}  // namespace

Result FrameWriter::try_send(std::span<const iovec> pieces) {
  return send_with(pieces, [&](std::size_t frame) { return sender_.try_writable(frame); });
}

Result FrameWriter::send(std::span<const iovec> pieces, fabric::Deadline deadline) {
  return send_with(pieces, [&](std::size_t frame) { return sender_.wait_writable(frame, deadline); });
}

template <class Wait>
Result FrameWriter::send_with(std::span<const iovec> pieces, const Wait& wait) {
  const std::size_t message = size_of(pieces);
  if (message > max_message()) return Result::failure(EMSGSIZE);
  if (const Result room = make_room(layout::frame_bytes(message), wait); !room.ok()) return room;
  std::byte* place = room_.data() + sizeof(FrameHeader);
  for (const iovec& piece : pieces) {
    arch::copy_into_shared(place, piece.iov_base, piece.iov_len);
    place += piece.iov_len;
  }
  return close_frame(message);
}

std::span<std::byte> FrameWriter::reserve(std::size_t bytes) {
  reserved_ = kNothing;
  if (bytes > max_message()) return {};
  const auto wait = [&](std::size_t frame) { return sender_.try_writable(frame); };
  if (!make_room(layout::frame_bytes(bytes), wait).ok()) return {};
  reserved_ = bytes;
  return room_.subspan(sizeof(FrameHeader), bytes);
}

Result FrameWriter::commit(std::size_t bytes) {
  const std::size_t reserved = std::exchange(reserved_, kNothing);
  if (reserved == kNothing || bytes > reserved) return Result::failure(EINVAL);
  return close_frame(bytes);
}

Result FrameWriter::wait_writable(std::size_t bytes, fabric::Deadline deadline) {
  if (bytes > max_message()) return Result::failure(EMSGSIZE);
  const auto wait = [&](std::size_t frame) { return sender_.wait_writable(frame, deadline); };
  const Result room = make_room(layout::frame_bytes(bytes), wait);
  return room.ok() ? Result::moved(bytes) : room;
}

Result FrameWriter::flush() {
  holding_ = false;
  return publish();
}

/// Makes room_ begin with space for a frame. If there is none, publishes the held frames, so that the receiver can make
/// space, and calls `wait`.
template <class Wait>
Result FrameWriter::make_room(std::size_t frame, const Wait& wait) {
  reserved_ = kNothing;
  while (!find_room(frame)) {
    if (const Result published = publish(); published.failed()) return published;
    if (const Result space = wait(frame); !space.ok()) return space;
  }
  return Result::moved(frame);
}

bool FrameWriter::find_room(std::size_t frame) {
  // Without pending frames room_ may be stale: bytes may have been sent without this object.
  if (pending_ != 0 && room_.size() >= frame) return true;
  const std::size_t more = holding_ ? std::min(kMostHeld, sender_.capacity() / 4) : 0;
  // Twice the frame: the rest before the ring's end may be slightly too short.
  const Regions regions = sender_.reserve(pending_ + layout::kFrameAlignment + std::max(2 * frame, more));
  if (regions.size() < pending_) return false;
  const std::size_t in_second = pending_ - std::min(pending_, regions.first.size());
  room_ = in_second != 0 ? regions.second.subspan(in_second) : regions.first.subspan(pending_);
  if (pending_ == 0) {
    const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(room_.data()) % layout::kFrameAlignment;
    if (room_.size() < skipped) return false;
    std::fill_n(room_.data(), skipped, std::byte{0});
    room_ = room_.subspan(skipped);
    pending_ = skipped;
  }
  if (room_.size() >= frame) return true;
  if (in_second != 0 || regions.second.empty()) return false;
  fill_up(room_);
  room_ = regions.second;
  return room_.size() >= frame;
}

/// Fills the rest before the ring's end with a filler frame.
void FrameWriter::fill_up(std::span<std::byte> rest) {
  if (rest.empty()) return;
  write_header(rest.data(), rest.size() - sizeof(FrameHeader), FrameKind::filler);
  pending_ += rest.size();
}

/// Completes a message in place: writes its header, and publishes it unless messages are held.
Result FrameWriter::close_frame(std::size_t message) {
  const std::size_t frame = layout::frame_bytes(message);
  write_header(room_.data(), message, FrameKind::message);
  room_ = room_.subspan(frame);
  pending_ += frame;
  if (holding_ && pending_ < std::min(kMostHeld, sender_.capacity() / 4)) return Result::moved(message);
  const Result published = publish();
  return published.failed() ? Result::failure(published.error) : Result::moved(message);
}

Result FrameWriter::publish() {
  room_ = {};
  return sender_.commit(std::exchange(pending_, 0));
}

}  // namespace wherry::stream
