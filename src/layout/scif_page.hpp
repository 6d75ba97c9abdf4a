// SPDX-License-Identifier: Apache-2.0
// The first page of each side's segment of a SCIF connection (adapters/scif/): the words of the two byte queues. Then
// comes the queue towards this side, and then what the windows need.
//
//   0          64                128               192         4096             8192
//   +----------+-----------------+-----------------+--- ... ---+----------------+--- ...
//   | reserved | arriving        | leaving         | reserved  | incoming queue | windows
//   +----------+-----------------+-----------------+--- ... ---+----------------+--- ...
//                W: peer's         W: peer's                     W: peer's
//                sender            receiver                      sender
//
// Packets on the socket are the queue's readiness towards the kernel, so that poll(2) on it tells the truth; they carry
// nothing. adapters/scif/inlet.hpp says how they are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::size_t kScifPageBytes = 4096;
inline constexpr std::size_t kScifQueueBytes = 4096;
inline constexpr std::size_t kScifQueueMost = kScifQueueBytes - 1;  ///< bytes that are ever in it
inline constexpr std::uint64_t kScifGreeting = 0x3130304649435357;  ///< "WSCIF001" in memory, little-endian

/// The queue towards the page's owner, as its sender tells it.
struct alignas(64) ScifArriving {
  Word tail;      // W: peer's sender, release: bytes ever written
  Word packets;   // W: peer's sender, before it sends one: packets ever sent
  Word full;      // W: peer's sender, before it sends it: number of the last packet that says that the queue is full
  Word answered;  // W: peer's sender, before it sends the packet: 1 + the last request that it answered by a packet
  std::uint64_t reserved[4];
};

/// The queue towards the peer, as its receiver tells it.
struct alignas(64) ScifLeaving {
  Word head;     // W: peer's receiver, release: bytes ever read
  Word request;  // W: peer's receiver: grows each time that it wants one packet when bytes arrive
  Word quiet;    // W: peer's receiver: bytes up to here need no packet, it waits for them
  Word drained;  // W: peer's receiver: packets ever taken off its socket
  std::uint64_t reserved[4];
};

struct ScifPage {
  std::uint64_t reserved[8];
  ScifArriving arriving;
  ScifLeaving leaving;
};
static_assert(std::is_standard_layout_v<ScifPage>);
static_assert(sizeof(ScifArriving) == 64 && offsetof(ScifArriving, tail) == 0 && offsetof(ScifArriving, packets) == 8);
static_assert(offsetof(ScifArriving, full) == 16 && offsetof(ScifArriving, answered) == 24);
static_assert(sizeof(ScifLeaving) == 64 && offsetof(ScifLeaving, head) == 0 && offsetof(ScifLeaving, request) == 8);
static_assert(offsetof(ScifLeaving, quiet) == 16 && offsetof(ScifLeaving, drained) == 24);
static_assert(offsetof(ScifPage, arriving) == 64 && offsetof(ScifPage, leaving) == 128, "one line for each writer");
static_assert(sizeof(ScifPage) <= kScifPageBytes);

}  // namespace wherry::layout
