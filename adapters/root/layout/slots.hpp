// SPDX-License-Identifier: Apache-2.0
// Slots for large messages of ROOT's sockets, in two windows of the receiver's. At offset 0 the slots, which so are
// huge pages where they are large; at kRootSlotsPageOffset, a page:
//
//   0            64          128         192                 0             bytes
//   +------------+-----------+-----------+---------------+   +-------------+-------------+
//   | version    | state     | state     | freed,        |   | slot 0      | slot 1      |
//   | slot bytes | of slot 0 | of slot 1 | awaited       |   | W: sender   | W: sender   |
//   +------------+-----------+-----------+---------------+   +-------------+-------------+
//
// The sender takes a slot that is free, fills it, and says in the stream, in the place of a message, that it did. The
// receiver's program takes the message, and the receiver frees the slot when the program has done with it. A sender
// that finds no free slot while messages are there that the receiver's program has not taken yet waits for one (a futex
// on `freed`); where the program keeps all of them it does not. When a message comes that is larger than the slots, the
// receiver shows larger ones: generation g, kRootSlotsStride * g and kRootSlotsPage * g further on, with its slots
// numbered from kRootSlots * g on. Once a side has begun to use a generation it uses none before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint64_t kRootSlotsVersion = 2;
inline constexpr std::size_t kRootSlots = 2;
inline constexpr std::size_t kRootSlotsPage = 4096;
inline constexpr std::uint64_t kRootSlotsPageOffset = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kRootSlotsStride = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kRootSlotsGenerations = 32;  // a limit

enum class RootSlot : std::uint64_t { free, filled, taken };

struct RootSlotState {
  alignas(64) Word state;  // a RootSlot. W: sender, filled, before it fills it; W: receiver, taken, and then free,
                           // release (ROOT-SLOT)
  std::uint64_t reserved[7];
};

struct RootSlotsPage {
  std::uint64_t version;     // W: receiver, once, before the windows are registered
  std::uint64_t slot_bytes;  // W: receiver, once; whole pages
  std::uint64_t reserved0[6];
  RootSlotState states[kRootSlots];
  alignas(64) std::atomic<std::uint32_t> freed;  // W: receiver, after it has freed a slot: one more
  std::atomic<std::uint32_t> awaited;            // W: sender; not 0 while it sleeps, or is about to, on `freed`
  std::uint64_t reserved1[7];
};
static_assert(std::is_standard_layout_v<RootSlotsPage> && sizeof(RootSlotsPage) <= kRootSlotsPage);
static_assert(offsetof(RootSlotsPage, version) == 0 && offsetof(RootSlotsPage, slot_bytes) == 8);
static_assert(offsetof(RootSlotsPage, states) == 64 && sizeof(RootSlotState) == 64);
static_assert(offsetof(RootSlotsPage, freed) == 192 && offsetof(RootSlotsPage, awaited) == 196);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// In the stream, where a message has its length: a message is in a slot. The same byte order as a message's length.
inline constexpr std::uint32_t kRootInSlot = 0xffff'ffff;

/// What stands in the stream instead of the message.
struct RootInSlot {
  std::uint32_t mark;   // W: sender; kRootInSlot
  std::uint32_t slot;   // W: sender
  std::uint32_t bytes;  // W: sender; of the whole message, its length word included
};
static_assert(sizeof(RootInSlot) == 12 && std::is_trivially_copyable_v<RootInSlot>);
static_assert(offsetof(RootInSlot, mark) == 0 && offsetof(RootInSlot, slot) == 4 && offsetof(RootInSlot, bytes) == 8);

}  // namespace wherry::layout
