// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace wherry::mpi {

void Send::reset() {
  to = nullptr;
  context = nullptr;
  kind = Kind::message;
  tagged = awaits = inject = is_injection = over = reported = false;
  wanted = true;
  wire.head = PacketHead{};
  wire_bytes = kept = 0;
  buffers = result = Buffers();
  report = 0;
  regions.fill(nullptr);
  copy.reset();
  streamed = wanted_bytes = 0;
  outcome = 0;
}

void Send::prepare(std::size_t bytes_of_wire, bool carries_payload) {
  wire_bytes = bytes_of_wire;
  pieces[0] = {&wire, wire_bytes};
  std::size_t count = 1;
  std::uint64_t bytes = wire_bytes;
  if (carries_payload) {
    for (const iovec& range : buffers.ranges()) {
      if (range.iov_len > 0) pieces[count++] = range;
    }
    bytes += buffers.bytes();
  }
  outgoing = Mailbox::Outgoing{{pieces.data(), count}, bytes, 0};
}

void Send::prepare_chunk(std::uint64_t most) {
  const std::span<std::byte> chunk = buffers.at(streamed, std::min(most, wanted_bytes - streamed));
  wire.head.data = streamed;
  wire.head.bytes = chunk.size();
  wire_bytes = sizeof(PacketHead);
  pieces[0] = {&wire, wire_bytes};
  pieces[1] = {chunk.data(), chunk.size()};
  outgoing = Mailbox::Outgoing{{pieces.data(), 2}, wire_bytes + chunk.size(), 0};
  streamed += chunk.size();
}

void Send::describe_payload() {
  std::uint16_t count = 0;
  for (const iovec& range : buffers.ranges()) {
    wire.table[count++] = {std::bit_cast<std::uintptr_t>(range.iov_base), range.iov_len};
  }
  wire.head.pieces = count;
}

std::size_t Send::head_bytes() const {
  return sizeof(PacketHead) + wire.head.pieces * sizeof(RemotePiece) + wire.head.ranges * sizeof(RemoteRange);
}

void Send::name_ranges(std::span<const RemoteRange> ranges) {
  std::memcpy(reinterpret_cast<std::byte*>(&wire) + head_bytes(), ranges.data(), ranges.size_bytes());
  wire.head.ranges = static_cast<std::uint8_t>(ranges.size());
}

void Send::copy_payload() {
  const std::size_t bytes = buffers.bytes();
  if (copy != nullptr || bytes == 0) return;
  copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  buffers.gather(copy.get());
  buffers = Buffers(copy.get(), bytes);
  if (outgoing.pieces.size() > 1) {
    pieces[1] = {copy.get(), bytes};
    outgoing.pieces = {pieces.data(), 2};
  }
}

}  // namespace wherry::mpi
