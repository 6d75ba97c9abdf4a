// SPDX-License-Identifier: Apache-2.0
// What a side brings into a connection. Part of the contract that fabric.hpp summarizes. May include: base, memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "memory/shared_memory.hpp"

namespace wherry::fabric {

inline constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 40;

/// Bytes that each side sends to the other while connecting. Fabrics do not interpret them (see StreamGreeting in
/// layout/stream_page.hpp).
using Greeting = std::array<std::byte, 64>;

/// Returns why a connector is refused, given its greeting and the size of its segment; nullptr if it is accepted.
using Objection = const char* (*)(const Greeting& greeting, std::size_t segment_bytes);

/// What a side brings into a connection.
struct Offer {
  std::size_t segment_bytes =
      0;  ///< size of the segment: a multiple of the page size, from one page to kMaxSegmentBytes
  /// The segment. Null: the fabric allocates it, zeroed, and frees it with the connection. Otherwise it is the caller's
  /// memory: page-aligned, private and writable. The peer reaches it from now on, with its content. It must outlive the
  /// connection, and remains usable afterwards.
  std::byte* memory = nullptr;
  Greeting greeting{};
  /// Memory that this side shows to the peer, read-only. It may be shown on any number of connections of the fabric
  /// that made it (Fabric::share). Null: none.
  std::shared_ptr<memory::SharedMemory> shared = nullptr;
  /// The peer may reach memory that this side exposes (Exposure::expose).
  bool exposes = false;
  /// False: this side cannot sleep on the connection, and must not call arm, wait, descriptor and notify_self. That
  /// saves their descriptors, for callers that are woken by other means.
  bool bells = true;
  /// The segment shares its first page with the data of the fabric. That saves a page per side, for callers with very
  /// many connections. The segment then begins at a multiple of a cache line, and may be up to a page smaller than
  /// `segment_bytes`. Not allowed with `memory`.
  bool compact = false;
  /// Only for accepting, and if Fabric::keeps_segments: also accepts a connector that has ended, for the data that it
  /// left in its segment. Its connection is gone from the beginning.
  bool departed = false;
  /// Only for accepting: a connector with an objection is refused before anything is sent to it, and the listener logs
  /// the reason. Null: greetings are not checked.
  Objection objection = nullptr;
};

}  // namespace wherry::fabric
