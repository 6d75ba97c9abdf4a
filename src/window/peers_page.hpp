// SPDX-License-Identifier: Apache-2.0
// Stores words about this side's windows and RMA in the peer's segment.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "fabric/connection.hpp"
#include "layout/window_page.hpp"

namespace wherry::window {

class PeersPage {
 public:
  PeersPage(fabric::Connection& connection, std::size_t place) : connection_(connection), place_(place) {}

  /// Stores a word with release order: a peer that sees it also sees all earlier stores and puts of this connection.
  void store(std::uint64_t offset, std::uint64_t value) {
    if (std::byte* map = connection_.map(); map != nullptr) {
      // WINDOW-ENTRY, WINDOW-MARK, WINDOW-RMA, WINDOW-TABLE release: for whichever word it is.
      reinterpret_cast<layout::Word*>(map + place_ + offset)->store(value, std::memory_order_release);
    } else {
      connection_.signal(place_ + offset, value, fabric::Bell::data);
    }
  }

  void store_changes(std::uint64_t value) { store(offsetof(layout::WindowPage, changes), value); }
  void store_closed() { store(offsetof(layout::WindowPage, closed), 1); }
  void store_started(std::uint64_t value) { store(offsetof(layout::WindowPage, started), value); }
  void store_completed(std::uint64_t value) { store(offsetof(layout::WindowPage, completed), value); }
  void store_mark(std::size_t entry, std::uint64_t value) {
    store(offsetof(layout::WindowPage, marks) + entry * sizeof(layout::Word), value);
  }
  void store_sequence(std::size_t entry, std::uint64_t value) { store(sequence_at(entry), value); }

  /// The words of an entry, in order.
  using EntryWords = std::array<std::uint64_t, 5>;
  static_assert(sizeof(EntryWords) == offsetof(layout::WindowEntry, reserved));

  /// Returns staging memory for `entries` entries, to be kept until they are flushed. Null on load/store fabrics.
  std::shared_ptr<std::byte[]> staging(std::size_t entries) {
    return connection_.map() != nullptr ? nullptr : connection_.buffer(entries * sizeof(EntryWords));
  }
  /// Stores an entry, and then its sequence.
  /// @param staged  a place in the staging memory; null on load/store fabrics
  void store_entry(std::size_t entry, const EntryWords& words, std::uint64_t sequence, std::byte* staged) {
    const std::uint64_t at = offsetof(layout::WindowPage, entries) + entry * sizeof(layout::WindowEntry);
    if (staged != nullptr) {
      std::memcpy(staged, words.data(), sizeof words);
      connection_.put_and_signal(place_ + at, {staged, sizeof words}, place_ + sequence_at(entry), sequence,
                                 fabric::Bell::data);
      return;
    }
    for (std::size_t i = 0; i < words.size(); ++i) store(at + i * sizeof(layout::Word), words[i]);
    store_sequence(entry, sequence);
  }

 private:
  static constexpr std::uint64_t sequence_at(std::size_t entry) {
    return offsetof(layout::WindowPage, sequences) + entry * sizeof(layout::Word);
  }

  fabric::Connection& connection_;
  const std::size_t place_;
};

}  // namespace wherry::window
