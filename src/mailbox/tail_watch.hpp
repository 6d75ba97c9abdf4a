// SPDX-License-Identifier: Apache-2.0
// The tails of the active pairs, as a look that found nothing has left them. Comparing them reads one line of each
// pair. A whole look also reads the state of each pair, which after a switch from another process is no longer in the
// caches.
//
// May include: base, layout, fabric.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "mailbox/pair.hpp"

namespace wherry::mailbox {

class TailWatch {
 public:
  /// Forgets all tails, before a whole look.
  void restart() noexcept {
    count_ = 0;
    complete_ = false;
  }
  /// Adds the tail of an open pair in which nothing is to be found. Tails beyond kMost are not watched.
  void add(const Pair& pair) noexcept {
    if (count_ < kMost) entries_[count_] = {&pair.in->tail(), pair.in->known_tail()};
    ++count_;
  }
  /// To be called when a whole look has found nothing. The tails are valid if all active pairs were added, and as long
  /// as Doorbells::version() is what it was when the look began.
  void complete(std::size_t active, std::uint64_t version) noexcept {
    complete_ = count_ == active && count_ <= kMost;
    version_ = version;
  }
  [[nodiscard]] bool is_valid(std::uint64_t version) const noexcept { return complete_ && version == version_; }
  /// Whether a peer has stored a new tail since. Only if is_valid().
  [[nodiscard]] bool has_moved() const noexcept {
    bool moved = false;  // no branch for each entry: the loads then overlap
    for (std::size_t i = 0; i < count_; ++i) {
      moved |= entries_[i].tail->load(std::memory_order_relaxed) != entries_[i].known;
    }
    return moved;
  }

 private:
  static constexpr std::size_t kMost = 16;
  struct Entry {
    const layout::Word* tail;
    std::uint64_t known;
  };

  std::array<Entry, kMost> entries_;
  std::size_t count_ = 0;
  bool complete_ = false;
  std::uint64_t version_ = 0;
};

}  // namespace wherry::mailbox
