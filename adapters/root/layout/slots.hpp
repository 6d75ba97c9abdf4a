// SPDX-License-Identifier: Apache-2.0
// Slots for large messages of ROOT's sockets, in two windows of the receiver's. The slots are at offset 0, apart from
// the page, so that large ones can be huge pages. At kRootSlotsPageOffset is a page:
//
//   0            64          128         192                 0             bytes
//   +------------+-----------+-----------+---------------+   +-------------+-------------+
//   | version    | state     | state     | freed,        |   | slot 0      | slot 1      |
//   | slot bytes | of slot 0 | of slot 1 | awaited       |   | W: sender   | W: sender   |
//   +------------+-----------+-----------+---------------+   +-------------+-------------+
//
// 1. The sender marks a free slot as filled, copies the message into it, and sends a RootInSlot in the stream instead
//    of the message.
// 2. The receiver's program takes the message. The receiver frees the slot when the program deletes the message.
// 3. If no slot is free and at least one is filled but not taken, the sender waits for one (a futex on `freed`). If the
//    program has taken all of them, the sender does not wait and sends through the ring.
//
// If a message is larger than the slots, the receiver adds a generation of larger ones. Generation g lies
// kRootSlotsStride * g and kRootSlotsPage * g further on, and its slots are numbered from kRootSlots * g. A side that
// has used a generation uses no earlier one.
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
  std::uint64_t slot_bytes;  // W: receiver, once; a multiple of the page size
  std::uint64_t reserved0[6];
  RootSlotState states[kRootSlots];
  alignas(64) std::atomic<std::uint32_t> freed;  // W: receiver, adds 1 after it has freed a slot
  std::atomic<std::uint32_t> awaited;            // W: sender; not 0 while it sleeps on `freed`, or is about to
  std::uint64_t reserved1[7];
};
static_assert(std::is_standard_layout_v<RootSlotsPage> && sizeof(RootSlotsPage) <= kRootSlotsPage);
static_assert(offsetof(RootSlotsPage, version) == 0 && offsetof(RootSlotsPage, slot_bytes) == 8);
static_assert(offsetof(RootSlotsPage, states) == 64 && sizeof(RootSlotState) == 64);
static_assert(offsetof(RootSlotsPage, freed) == 192 && offsetof(RootSlotsPage, awaited) == 196);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// In the stream, in the place of a message's length: the message is in a slot. Equal in both byte orders.
inline constexpr std::uint32_t kRootInSlot = 0xffff'ffff;

/// Sent in the stream instead of a message that lies in a slot.
struct RootInSlot {
  std::uint32_t mark;   // W: sender; kRootInSlot
  std::uint32_t slot;   // W: sender
  std::uint32_t bytes;  // W: sender; of the whole message, its length word included
};
static_assert(sizeof(RootInSlot) == 12 && std::is_trivially_copyable_v<RootInSlot>);
static_assert(offsetof(RootInSlot, mark) == 0 && offsetof(RootInSlot, slot) == 4 && offsetof(RootInSlot, bytes) == 8);

}  // namespace wherry::layout
