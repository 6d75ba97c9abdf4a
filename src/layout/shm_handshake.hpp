// SPDX-License-Identifier: Apache-2.0
// The two messages of the shm fabric's handshake: the connector's request and the listener's answer, each one packet on
// the rendezvous socket. With it travel descriptors, in this order: the memory (a sealed memfd); the timers of its
// sender's data and space bells, unless it has none; the memory it shows for reading (a sealed memfd), if shared_bytes
// is not 0; and the arena of what it exposes (a sealed memfd), if arena_bytes is not 0.
//
//   connector                                             listener
//     | -- ShmHello + memfd, (2 timers, memfd, memfd) -->  |   when it connects
//     | <-- ShmHello + memfd, (2 timers, memfd, memfd) --- |   when the program accepts
//     |        (then the socket carries nothing: its end is the news of a death)
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kShmMagic = 0x4d485357;  // "WSHM" in memory, little-endian
inline constexpr std::uint32_t kShmVersion = 4;
inline constexpr std::size_t kShmMostDescriptors = 5;

/// The sender of the hello takes part in interrupts (arch/barrier.hpp). If both sides do, either may publish unfenced,
/// and says so in layout/bell_page.hpp:Publisher.
inline constexpr std::uint32_t kShmInterrupts = 1;
/// The sender of the hello has no bells: it is woken by other means, or never sleeps.
inline constexpr std::uint32_t kShmNoBells = 2;

struct ShmHello {
  std::uint32_t magic;          // kShmMagic
  std::uint32_t version;        // kShmVersion
  std::uint16_t node;           // of the sender
  std::uint16_t port;           // of the sender; 0: none bound
  std::uint32_t features;       // kShmInterrupts, kShmNoBells; bits that are not known here mean nothing
  std::uint64_t segment_bytes;  // the memfd is a bell page, then this many bytes
  std::uint8_t greeting[64];    // for the layer above
  std::uint64_t shared_bytes;   // of the memory shown, 0: there is none
  std::uint64_t arena_bytes;    // of the arena, 0: the sender exposes nothing
};
static_assert(std::is_trivially_copyable_v<ShmHello>);
static_assert(sizeof(ShmHello) == 104);
static_assert(offsetof(ShmHello, magic) == 0 && offsetof(ShmHello, version) == 4);
static_assert(offsetof(ShmHello, port) == 10 && offsetof(ShmHello, features) == 12);
static_assert(offsetof(ShmHello, node) == 8 && offsetof(ShmHello, segment_bytes) == 16 &&
              offsetof(ShmHello, greeting) == 24 && offsetof(ShmHello, shared_bytes) == 88 &&
              offsetof(ShmHello, arena_bytes) == 96);

}  // namespace wherry::layout
