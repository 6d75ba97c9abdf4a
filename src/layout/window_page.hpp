// SPDX-License-Identifier: Apache-2.0
// The table of the windows that the peer has registered on a connection, and the counters of its RMA. Each side has one
// in its own segment. The peer writes it, and the owner reads it. Pages take memory once they are used.
//
//   0          64            128                192        4096         36864        69632          331776
//   +----------+-------------+------------------+-- ... ---+------------+------------+--------------+
//   | header   | the table:  | RMA: started,    | reserved | marks      | sequences  | entries      |
//   |          | changes ... | completed        |          | 8 B x 4096 | 8 B x 4096 | 64 B x 4096  |
//   +----------+-------------+------------------+-- ... ---+------------+------------+--------------+
//     W: owner   W: peer       W: peer                       W: peer      W: peer      W: peer
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint64_t kWindowVersion = 2;
/// Most pieces of windows that one side can register on one connection. A window of ordinary memory is one piece.
inline constexpr std::size_t kMostWindows = 4096;

/// One piece of a window. Seqlock: an entry is valid if its sequence is odd, and is the same before and after the read.
struct WindowEntry {
  Word offset;      // W: peer; in its registered address space, a multiple of the page size
  Word bytes;       // W: peer; a multiple of the page size
  Word place;       // W: peer; memory/region.hpp:RemoteKey
  Word kind;        // W: peer; memory/region.hpp:RemoteKey
  Word protection;  // W: peer; PROT_READ, PROT_WRITE: what the owner may do
  std::uint64_t reserved[3];
};
static_assert(sizeof(WindowEntry) == 64);
static_assert(offsetof(WindowEntry, offset) == 0 && offsetof(WindowEntry, bytes) == 8);
static_assert(offsetof(WindowEntry, place) == 16 && offsetof(WindowEntry, kind) == 24);
static_assert(offsetof(WindowEntry, protection) == 32 && offsetof(WindowEntry, reserved) == 40);

struct WindowPage {
  std::uint64_t version;  // W: owner, once; for tools
  std::uint64_t reserved0[7];

  alignas(64) Word changes;  // W: peer, release (WINDOW-TABLE): window_changes(), after each change of an entry
  Word closed;               // W: peer, release (WINDOW-TABLE): not 0 when it has left
  std::uint64_t reserved1[6];

  alignas(64) Word started;  // W: peer, release (WINDOW-RMA): its RMA calls so far
  Word completed;            // W: peer, release (WINDOW-RMA): number of its first calls that are all complete
  std::uint64_t reserved2[6];

  alignas(4096) Word marks[kMostWindows];  // W: peer: the sequence of the owner's entry that it maps now; 0: none
  Word sequences[kMostWindows];            // W: peer, release (WINDOW-ENTRY): odd while the entry is valid
  WindowEntry entries[kMostWindows];
};
static_assert(std::is_standard_layout_v<WindowPage>);
static_assert(offsetof(WindowPage, version) == 0);
static_assert(offsetof(WindowPage, changes) == 64 && offsetof(WindowPage, closed) == 72);
static_assert(offsetof(WindowPage, started) == 128 && offsetof(WindowPage, completed) == 136);
static_assert(offsetof(WindowPage, marks) == 4096 && offsetof(WindowPage, sequences) == 36864);
static_assert(offsetof(WindowPage, entries) == 69632);
static_assert(sizeof(WindowPage) == 331776 && sizeof(WindowPage) % 4096 == 0);

/// Packs the number of changes and the number of entries used so far into one word, so that a network carries it in one
/// signal. The entries behind were never used.
constexpr std::uint64_t window_changes(std::uint64_t count, std::size_t used) { return count << 16 | used; }
constexpr std::size_t windows_used(std::uint64_t changes) { return changes & 0xffff; }
static_assert(kMostWindows <= 0xffff);

}  // namespace wherry::layout
