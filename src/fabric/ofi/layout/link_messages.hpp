// SPDX-License-Identifier: Apache-2.0
// What the two ends of a data connection between hosts send to each other, besides writes into memory: messages of one
// size, and the word that travels with a write as remote CQ data. Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::fabric::ofi::layout {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint32_t kLinkVersion = 1;

enum class LinkKind : std::uint32_t {
  welcome = 1,      // the first of each side. number: kLinkVersion; a: key of its segment; b: its address; c: its bytes
  slot = 2,         // number: index; a: offset of a word; b: its LinkBell. Written once for each index
  word = 3,         // number: LinkBell; a: offset in the segment; b: value
  region_word = 4,  // a: offset in exposed memory; b: value; c: the key of that memory
  flush = 5,        // a: number of the flush; answered by `flushed`
  flushed = 6,      // a: the same number
  reach = 7,        // number: of the request; a, b: RemoteKey; c: bytes; answered by `reached`
  reached = 8,      // number: of the request; a: key; b: address; c: 0 or an errno value
};

enum class LinkBell : std::uint32_t { data = 0, space = 1, none = 2 };

struct LinkMessage {
  std::uint32_t kind;  // LinkKind
  std::uint32_t number;
  std::uint64_t a;
  std::uint64_t b;
  std::uint64_t c;
};
static_assert(sizeof(LinkMessage) == 32 && std::is_trivially_copyable_v<LinkMessage>);
static_assert(offsetof(LinkMessage, kind) == 0 && offsetof(LinkMessage, number) == 4 && offsetof(LinkMessage, a) == 8 &&
              offsetof(LinkMessage, b) == 16 && offsetof(LinkMessage, c) == 24);

/// Remote CQ data: the low 8 bits are the index of a slot, the others the value.
inline constexpr std::size_t kSlots = 256;
inline constexpr std::uint64_t kMostSlotValue = (std::uint64_t{1} << 56) - 1;

constexpr std::uint64_t slot_data(std::uint8_t slot, std::uint64_t value) { return value << 8 | slot; }
constexpr std::uint8_t slot_of(std::uint64_t data) { return static_cast<std::uint8_t>(data & 0xff); }
constexpr std::uint64_t slot_value(std::uint64_t data) { return data >> 8; }
static_assert(slot_of(slot_data(7, kMostSlotValue)) == 7 && slot_value(slot_data(7, kMostSlotValue)) == kMostSlotValue);

}  // namespace wherry::fabric::ofi::layout
