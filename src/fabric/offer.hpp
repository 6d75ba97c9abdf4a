// SPDX-License-Identifier: Apache-2.0
// What a side brings into a connection, part of the contract that fabric.hpp sums up. May include: base, memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "memory/shared_memory.hpp"

namespace wherry::fabric {

inline constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 40;

/// The few bytes of its own that each side tells the other while connecting (see StreamGreeting in
/// layout/stream_page.hpp).
using Greeting = std::array<std::byte, 64>;

/// Why a connector is refused for what it says of its side, nullptr if it is not. `segment_bytes`: of its segment.
using Objection = const char* (*)(const Greeting& greeting, std::size_t segment_bytes);

/// What a side brings into a connection.
struct Offer {
  std::size_t segment_bytes =
      0;  ///< size of the segment: a multiple of the page size, from one page to kMaxSegmentBytes
  /// Null: the fabric allocates the segment, zeroed, and frees it with the connection. Otherwise memory of the
  /// caller's, page-aligned, private and writable: the peer reaches it from now on, its content is kept, and it stays
  /// the caller's: it must outlive the connection and is usable memory after it.
  std::byte* memory = nullptr;
  Greeting greeting{};
  /// Memory that this side shows to the peer, for reading only; the same may be shown on any number of connections of
  /// the fabric that made it (Fabric::share). Null: none.
  std::shared_ptr<memory::SharedMemory> shared = nullptr;
  /// The peer may reach memory that this side exposes (Exposure::expose).
  bool exposes = false;
  /// Without bells this side cannot sleep on the connection (arm, wait, descriptor and notify_self are not for it), and
  /// saves their descriptors: for callers that are woken by other means.
  bool bells = true;
  /// The segment is to share its first page with what the fabric keeps beside it: one page less of each side, for those
  /// that have very many connections. It then begins at a multiple of a cache line, and may have up to a page less than
  /// `segment_bytes`. Not with `memory`.
  bool compact = false;
  /// For accepting, where Fabric::keeps_segments: a connector that has ended is let in, too, for what it left in its
  /// segment. Its connection is gone from the beginning.
  bool departed = false;
  /// For accepting: a connector with an objection is refused before it hears anything, and the listener's log says why.
  /// Null: the fabric looks into no greeting.
  Objection objection = nullptr;
};

}  // namespace wherry::fabric
