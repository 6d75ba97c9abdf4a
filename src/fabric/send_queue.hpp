// SPDX-License-Identifier: Apache-2.0
// The queue of what one side of a connection sends over a network, in order. Gathers small puts while others are in
// flight. Independent of the network. May include: base, arch, layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "fabric/bell.hpp"

namespace wherry::fabric {

/// One thread at a time.
class SendQueue {
 public:
  /// While this many items are in flight, the last put waits for others to join it. It is sent when it has kGathered
  /// bytes, or when an item in flight completes. Puts of kGathered bytes or more do not wait.
  static constexpr std::size_t kInFlight = 2;
  static constexpr std::size_t kGathered = std::size_t{64} << 10;

  struct Word {
    std::uint64_t at = 0;
    std::uint64_t value = 0;
    std::optional<Bell> bell;
  };
  /// Bytes, a word, or both. The word is stored after the bytes and after all earlier items.
  struct Item {
    std::uint64_t to = 0;  ///< destination of the bytes, in the fabric's address space
    std::span<const std::byte> source{};
    std::optional<Word> word{};
    std::span<std::byte> into{};         ///< not empty: bytes are read from `to` into this span instead
    std::shared_ptr<const void> keep{};  ///< released when the item is complete
    std::uint64_t pushed{};              ///< set by `push`: the number of the last push that is part of this item
  };

  /// Appends an item, or joins it to the last one.
  void push(Item item) {
    item.pushed = ++pushed_;
    bytes_ += item.source.size();
    if (!items_.empty() && join(items_.back(), item)) return;
    items_.push_back(std::move(item));
  }
  /// Returns the next item to send. Null if there is none, or if it waits for others to join it.
  [[nodiscard]] const Item* next(std::size_t in_flight) const {
    if (items_.empty() || (items_.size() == 1 && in_flight >= kInFlight && may_grow(items_.front()))) return nullptr;
    return &items_.front();
  }
  /// Removes and returns the next item.
  Item take() {
    Item item = std::move(items_.front());
    items_.pop_front();
    bytes_ -= item.source.size();
    return item;
  }
  void clear() {
    items_.clear();
    bytes_ = 0;
  }

  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the number of calls of `push`.
  [[nodiscard]] std::uint64_t pushed() const { return pushed_; }

 private:
  static bool may_grow(const Item& item) { return item.word && !item.source.empty() && item.source.size() < kGathered; }
  static bool same_word(const Item& last, const Item& item) {
    return last.word && item.word && last.word->at == item.word->at && last.word->bell == item.word->bell;
  }
  /// Joins an item to the last one if both store the same word: only the later value is needed. Bytes join if they are
  /// contiguous with the last ones, in the source and in the destination.
  static bool join(Item& last, const Item& item) {
    if (!same_word(last, item) || last.keep != item.keep) return false;
    if (!item.source.empty()) {
      const bool follows = !last.source.empty() && item.to == last.to + last.source.size() &&
                           item.source.data() == last.source.data() + last.source.size();
      if (!follows || last.source.size() + item.source.size() > kGathered) return false;
      last.source = {last.source.data(), last.source.size() + item.source.size()};
    }
    last.word->value = item.word->value;
    last.pushed = item.pushed;
    return true;
  }

  std::deque<Item> items_;
  std::size_t bytes_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace wherry::fabric
