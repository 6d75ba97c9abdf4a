// SPDX-License-Identifier: Apache-2.0
// The messages of the shm fabric's handshake: the connector's request and the listener's answer. Each is one packet on
// a rendezvous socket, and carries descriptors of sealed memfds in this order:
//  1. the memory with the bell page and the segment;
//  2. the pool that its sender shows for reading, if shared_bytes is not 0;
//  3. the sender's arena, if arena_bytes is not 0.
// Before the request, the connector makes a second connection, the companion, and sends a random number there. The
// request then names the companion by this number.
//
//   connector                                          listener
//     | == ShmCompanion ===============================>  |   on the companion
//     | -- ShmHello + memfd, (memfd, memfd) ----------->  |   when it connects
//     | <-- ShmHello + memfd, (memfd, memfd) -----------  |   when the program accepts
//     |   then both sockets carry rings, packets of one  |
//     |   byte: the first socket of the data bells, the   |
//     |   companion of the space bells. The end of a      |
//     |   socket is the death of the peer.                |
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kShmMagic = 0x4d485357;  // "WSHM" in memory, little-endian
inline constexpr std::uint32_t kShmVersion = 6;
inline constexpr std::size_t kShmMostDescriptors = 3;

/// The sender of the hello takes part in interrupts (arch/barrier.hpp). If both sides do, either may publish without a
/// fence, and announces that in layout/bell_page.hpp:Publisher::unfenced.
inline constexpr std::uint32_t kShmInterrupts = 1;
/// The sender of the hello has no bells. The peer must not ring it: it is woken by other means, or never sleeps.
inline constexpr std::uint32_t kShmNoBells = 2;
/// The segment in the memory sent with the hello is compact: see layout/bell_page.hpp:segment_place.
inline constexpr std::uint32_t kShmCompact = 4;

struct ShmHello {
  std::uint32_t magic;          // kShmMagic
  std::uint32_t version;        // kShmVersion
  std::uint16_t node;           // of the sender
  std::uint16_t port;           // of the sender; 0: none bound
  std::uint32_t features;       // kShmInterrupts, kShmNoBells, kShmCompact; unknown bits are ignored
  std::uint64_t segment_bytes;  // the memfd is the bell page, then this many bytes
  std::uint8_t greeting[64];    // for the layer above
  std::uint64_t shared_bytes;   // of the pool shown for reading; 0: none
  std::uint64_t arena_bytes;    // of the arena; 0: the sender has none
  std::uint64_t companion;      // of a connector: the number of its companion; 0: none. Of a listener: 0
};

struct ShmCompanion {
  std::uint32_t magic;    // kShmMagic
  std::uint32_t version;  // kShmVersion
  std::uint64_t number;   // random, not 0
};
static_assert(std::is_trivially_copyable_v<ShmHello>);
static_assert(sizeof(ShmHello) == 112);
static_assert(offsetof(ShmHello, magic) == 0 && offsetof(ShmHello, version) == 4);
static_assert(offsetof(ShmHello, port) == 10 && offsetof(ShmHello, features) == 12);
static_assert(offsetof(ShmHello, node) == 8 && offsetof(ShmHello, segment_bytes) == 16 &&
              offsetof(ShmHello, greeting) == 24 && offsetof(ShmHello, shared_bytes) == 88 &&
              offsetof(ShmHello, arena_bytes) == 96 && offsetof(ShmHello, companion) == 104);
static_assert(std::is_trivially_copyable_v<ShmCompanion> && sizeof(ShmCompanion) == 16);
static_assert(offsetof(ShmCompanion, magic) == 0 && offsetof(ShmCompanion, version) == 4 &&
              offsetof(ShmCompanion, number) == 8);

}  // namespace wherry::layout
