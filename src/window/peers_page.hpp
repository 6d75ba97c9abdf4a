// SPDX-License-Identifier: Apache-2.0
// What this side tells the peer about its windows and its RMA: words in the peer's segment. May include: base, arch,
// layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/connection.hpp"
#include "layout/window_page.hpp"

namespace wherry::window {

class PeersPage {
 public:
  PeersPage(fabric::Connection& connection, std::size_t place) : connection_(connection), place_(place) {}

  /// Stores a word, release: with it the peer sees what was stored before, and all puts of this connection before.
  void store(std::uint64_t offset, std::uint64_t value) {
    if (std::byte* map = connection_.map(); map != nullptr) {
      // WINDOW-ENTRY, WINDOW-MARK, WINDOW-RMA, WINDOW-TABLE release: of whichever word it is.
      reinterpret_cast<layout::Word*>(map + place_ + offset)->store(value, std::memory_order_release);
    } else {
      connection_.signal(place_ + offset, value, fabric::Bell::data);
    }
  }

  void store_changes(std::uint64_t value) { store(offsetof(layout::WindowPage, changes), value); }
  void store_used(std::uint64_t value) { store(offsetof(layout::WindowPage, used), value); }
  void store_closed() { store(offsetof(layout::WindowPage, closed), 1); }
  void store_started(std::uint64_t value) { store(offsetof(layout::WindowPage, started), value); }
  void store_completed(std::uint64_t value) { store(offsetof(layout::WindowPage, completed), value); }
  void store_mark(std::size_t entry, std::uint64_t value) {
    store(offsetof(layout::WindowPage, marks) + entry * sizeof(layout::Word), value);
  }
  void store_sequence(std::size_t entry, std::uint64_t value) {
    store(offsetof(layout::WindowPage, sequences) + entry * sizeof(layout::Word), value);
  }
  void store_entry(std::size_t entry, std::uint64_t offset, std::uint64_t bytes, const memory::RemoteKey& key,
                   int protection) {
    const std::uint64_t at = offsetof(layout::WindowPage, entries) + entry * sizeof(layout::WindowEntry);
    store(at + offsetof(layout::WindowEntry, offset), offset);
    store(at + offsetof(layout::WindowEntry, bytes), bytes);
    store(at + offsetof(layout::WindowEntry, place), key.place);
    store(at + offsetof(layout::WindowEntry, kind), key.kind);
    store(at + offsetof(layout::WindowEntry, protection), static_cast<std::uint64_t>(protection));
  }

 private:
  fabric::Connection& connection_;
  const std::size_t place_;
};

}  // namespace wherry::window
