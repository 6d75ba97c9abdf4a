// SPDX-License-Identifier: Apache-2.0
#include "link.hpp"

#include <bit>
#include <cstring>

namespace wherry::mpi {
namespace {

template <class Entry, std::size_t kMost>
bool read_table(const std::byte* from, std::size_t count, std::uint64_t sum, std::array<Entry, kMost>& table) {
  std::memcpy(table.data(), from, count * sizeof(Entry));
  for (std::size_t i = 0; i < count; ++i) {
    if (table[i].bytes > sum) return false;
    sum -= table[i].bytes;
  }
  return sum == 0;
}

}  // namespace

void Wire::append(const void* from, std::size_t count) {
  std::memcpy(reinterpret_cast<std::byte*>(this) + bytes, from, count);
  bytes += count;
}

void Wire::describe(const Buffers& payload) {
  for (const iovec& range : payload.ranges()) {
    const RemotePiece piece{std::bit_cast<std::uintptr_t>(range.iov_base), range.iov_len};
    append(&piece, sizeof(piece));
    ++head.pieces;
  }
}

void Wire::name_ranges(std::span<const RemoteRange> ranges) {
  append(ranges.data(), ranges.size_bytes());
  head.ranges = static_cast<std::uint8_t>(ranges.size());
}

bool Inflow::read_pieces(std::array<RemotePiece, kMostRemotePieces>& table) const {
  return read_table(head.data() + sizeof(PacketHead), packet.pieces, packet.bytes, table);
}

bool Inflow::read_ranges(std::array<RemoteRange, kMostRemoteRanges>& table) const {
  const std::size_t offset = sizeof(PacketHead) + packet.pieces * sizeof(RemotePiece);
  return read_table(head.data() + offset, packet.ranges, packet.bytes, table);
}

}  // namespace wherry::mpi
