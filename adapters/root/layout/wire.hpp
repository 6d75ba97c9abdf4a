// SPDX-License-Identifier: Apache-2.0
// The messages between a worker and a server of files in windows (adapters/root/handover), over one FramedStream.
// Each message is a RootRecord; some kinds append a text. The bytes of the files are not part of the messages: they lie
// in the server's windows.
//
//   worker to server                                     server to worker
//   hello    value: version, id                          welcome  value: the largest file, bytes: a unit,
//                                                                 place: how many of its files may wait,
//                                                                 number, where the output is (may be empty)
//   need     bytes: of the lease, from its front         grant    value: offset of the window, bytes: of it
//   post     bytes, value: sequence, place, name         done     value: sequence
//   leave                                                recall
//   listen                                               refuse   reason; the last message
//   finished                                             farewell; the last message
//
// A worker fills one lease at a time. It gets the lease with `need`, and leaves it with `leave` or with a `post` that
// has kRootLeaves. Another `need` before that asks for more of the same lease. A lease smaller than a unit does not
// grow: the worker leaves it for a larger one. The worker chooses where its files lie: each begins at a multiple of
// kRootPlace in the lease's first unit, and overlaps no file that is not done. When there is memory, the server answers
// `need` with a `grant` of at least as many bytes. Until then the worker sends nothing else.
//
// The server reports done files in batches, when they are at least half of the files that waited. From `listen` to the
// next `post` it reports each at once. `recall` means that others wait for memory: the worker leaves its lease with its
// next post, or with `leave` if it is writing no file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; this machine needs byte swaps");

inline constexpr std::uint64_t kRootVersion = 0x0005'544f'4f52;  ///< "ROOT" as bytes, then the version
// Limits in bytes: a receiver ends the connection to a peer that exceeds one.
inline constexpr std::size_t kRootMaxName = 4095;
inline constexpr std::size_t kRootMaxReason = 4095;
inline constexpr std::size_t kRootMaxOutput = 4095;
/// Files begin at multiples of this.
inline constexpr std::size_t kRootPlace = 4096;

enum class RootKind : std::uint32_t {
  hello = 1,
  need = 2,
  post = 3,
  leave = 4,
  finished = 5,
  listen = 6,
  welcome = 16,
  grant = 17,
  done = 18,
  refuse = 19,
  recall = 20,
  farewell = 21,
};

// Flags of hello.
inline constexpr std::uint32_t kRootReturns = 1;  ///< if this server dies, the worker looks for another
// Flags of post.
inline constexpr std::uint32_t kRootAgain = 1;   ///< the file was posted to a previous server
inline constexpr std::uint32_t kRootLeaves = 2;  ///< the worker begins no other file in this lease
// Flags of grant.
inline constexpr std::uint32_t kRootKeeps = 1;  ///< the worker may keep the lease while it has no file to write

/// One size for every kind; a field that the kind does not use is 0. W: the sender of the kind, every field.
struct RootRecord {
  std::uint32_t kind;   ///< RootKind
  std::uint32_t flags;  ///< of hello, of post, of grant; of welcome: the worker's number, from 0
  std::uint64_t value;
  std::uint64_t bytes;
  std::uint64_t place;
  std::uint8_t id[16];  ///< of hello: the worker's
};
static_assert(sizeof(RootRecord) == 48 && std::is_trivially_copyable_v<RootRecord>);
static_assert(offsetof(RootRecord, kind) == 0);
static_assert(offsetof(RootRecord, flags) == 4);
static_assert(offsetof(RootRecord, value) == 8);
static_assert(offsetof(RootRecord, bytes) == 16);
static_assert(offsetof(RootRecord, place) == 24);
static_assert(offsetof(RootRecord, id) == 32);

}  // namespace wherry::layout
