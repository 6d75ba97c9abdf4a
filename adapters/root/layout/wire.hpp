// SPDX-License-Identifier: Apache-2.0
// What a worker and a server of files in windows (adapters/root/handover) say to each other over one FramedStream.
// Each message is a RootRecord and, where the kind says so, text behind it. The bytes of the files are not among them:
// they lie in the server's windows.
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
// A worker fills one lease at a time, from the first `need` until it leaves it: with a `post` that says so, or with
// `leave`. What it needs meanwhile is the same lease, larger; one that is smaller than a unit does not grow, and is
// left for a larger one. Files lie where it likes, each at a whole kRootPlace in the lease's first unit, but not where
// one lies that is not done. A `need` is answered by a `grant` of at least as much, when there is memory; before that
// the worker says nothing else.
//
// The server tells of files that are done when they are half of those that waited; from `listen` to the next `post`, of
// each at once. After `recall`, which says that others wait for memory, a worker leaves its lease with its next post.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; this machine needs byte swaps");

inline constexpr std::uint64_t kRootVersion = 0x0005'544f'4f52;  ///< "ROOT" as bytes, then the version
// Limits: a receiver lets a peer go that passes one.
inline constexpr std::size_t kRootMaxName = 4095;
inline constexpr std::size_t kRootMaxReason = 4095;
inline constexpr std::size_t kRootMaxOutput = 4095;
/// Where files may begin: at multiples of it.
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
inline constexpr std::uint32_t kRootReturns = 1;  ///< when this server dies, it will look for another
// Flags of post.
inline constexpr std::uint32_t kRootAgain = 1;   ///< it was posted to a server before this one
inline constexpr std::uint32_t kRootLeaves = 2;  ///< the worker begins no other file in this lease
// Flags of grant.
inline constexpr std::uint32_t kRootKeeps = 1;  ///< the worker need not leave it when it has no file to write

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
