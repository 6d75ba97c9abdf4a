// SPDX-License-Identifier: Apache-2.0
// The first page of each side's segment of a SCIF connection (adapters/scif/): the words of the two byte queues. Behind
// it lie the queue to this side and the memory of the windows.
//
//   0          64                128               192               256         4096             8192
//   +----------+-----------------+-----------------+-----------------+--- ... ---+----------------+--- ...
//   | socket   | arriving        | leaving         | wanting         | reserved  | incoming queue | windows
//   +----------+-----------------+-----------------+-----------------+--- ... ---+----------------+--- ...
//     W: peer    W: peer's         W: peer's         W: peer's                     W: peer's
//                sender            receiver          receiver                      sender
//
// Packets on the socket make poll(2) report the state of the queue. They carry no data. adapters/scif/receive_queue.hpp
// describes their use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::size_t kScifPageBytes = 4096;
inline constexpr std::size_t kScifQueueBytes = 4096;
inline constexpr std::size_t kScifQueueMost = kScifQueueBytes - 1;  ///< bytes that are ever in it
inline constexpr std::uint64_t kScifGreeting = 0x3330304649435357;  ///< "WSCIF003" in memory, little-endian

/// State of the queue to the page's owner, as written by its sender.
struct alignas(64) ScifArriving {
  Word tail;     // W: peer's sender, release: bytes ever written
  Word packets;  // W: peer's sender, before it sends one: packets ever sent
  Word full;  // W: peer's sender, before it sends it: number of the last packet that marks the queue as full; goes back
              // if there is space after all, and the number is then another packet's
  Word answered;   // W: peer's sender, before it sends the packet: 1 + the last request that it answered by a packet
  Word full_sent;  // W: peer's sender, once that packet and the one behind it are on the socket: `full`
  std::uint64_t reserved[3];
};

/// State of the queue to the peer, as written by its receiver. The sender reads it only when it lacks space. So the
/// receiver's store of `head`, one for each message, and the fence behind it do not wait for another core.
struct alignas(64) ScifLeaving {
  Word head;     // W: peer's receiver, release: bytes ever read
  Word drained;  // W: peer's receiver: packets ever taken off its socket
  std::uint64_t reserved[6];
};

/// Requests of the same receiver. The sender reads them after each message.
struct alignas(64) ScifWanting {
  Word request;  // W: peer's receiver: grows each time that it requests one packet for the next bytes
  Word quiet;    // W: peer's receiver: bytes up to here need no packet, because it polls for them
  Word polled;   // W: peer's receiver: a write that begins before this needs no packet, whatever its length
  std::uint64_t reserved[5];
};

/// The peer's socket, so that this side can find it in the peer's process (adapters/scif/own_packet.hpp).
struct alignas(64) ScifSocket {
  Word inode;       // W: peer, last; 0: not known yet
  Word descriptor;  // W: peer, before the inode
  std::uint64_t reserved[6];
};

struct ScifPage {
  ScifSocket socket;
  ScifArriving arriving;
  ScifLeaving leaving;
  ScifWanting wanting;
};
static_assert(std::is_standard_layout_v<ScifPage>);
static_assert(sizeof(ScifArriving) == 64 && offsetof(ScifArriving, tail) == 0 && offsetof(ScifArriving, packets) == 8);
static_assert(offsetof(ScifArriving, full) == 16 && offsetof(ScifArriving, answered) == 24);
static_assert(offsetof(ScifArriving, full_sent) == 32);
static_assert(sizeof(ScifLeaving) == 64 && offsetof(ScifLeaving, head) == 0 && offsetof(ScifLeaving, drained) == 8);
static_assert(sizeof(ScifWanting) == 64 && offsetof(ScifWanting, request) == 0 && offsetof(ScifWanting, quiet) == 8);
static_assert(offsetof(ScifWanting, polled) == 16);
static_assert(sizeof(ScifSocket) == 64 && offsetof(ScifSocket, inode) == 0 && offsetof(ScifSocket, descriptor) == 8);
static_assert(offsetof(ScifPage, socket) == 0 && offsetof(ScifPage, arriving) == 64, "one line for each writer");
static_assert(offsetof(ScifPage, leaving) == 128 && offsetof(ScifPage, wanting) == 192, "and for each rate of looks");
static_assert(sizeof(ScifPage) <= kScifPageBytes);

}  // namespace wherry::layout
