// SPDX-License-Identifier: Apache-2.0
// A single-producer single-consumer queue of bytes: a view over memory it does not own. May include: base, arch,
// layout; knows no fabric.
//
// Two positions count the bytes ever written (tail) and ever read (head); a position's place in the ring is
// position & (capacity - 1), so tail - head is the fill and full differs from empty without a spare byte.
//
//      producer's side                             consumer's side
//   +-------------------+   bytes, then tail    +----------------------+
//   | reads head   <----+-----------------------+--- writes head       |
//   | writes tail  -----+-----------------------+--> reads tail        |
//   +-------------------+                       +----------------------+
//
// Each end reads the word its opposite writes *where it lies in its own memory* and keeps the last value it saw, so the
// shared line is touched only when that value is used up. Where the opposite's memory is mapped, an end publishes its
// own word by a release store; where it is not (put fabrics), the pointer is null and the owner of the end carries the
// returned value over. Words come from a process that is not trusted: each is copied once and checked, and a wrong one
// makes the end `broken` for good.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "arch/prefetch.hpp"
#include "layout/bell_page.hpp"

namespace wherry::ring {

inline constexpr std::size_t kMinCapacity = std::size_t{4} << 10;
inline constexpr std::size_t kMaxCapacity = std::size_t{1} << 30;

/// `bytes` rounded up to a power of two within [kMinCapacity, kMaxCapacity].
std::size_t round_capacity(std::size_t bytes);

/// The bytes of a ring. `capacity` is a power of two.
struct View {
  std::byte* data = nullptr;
  std::size_t capacity = 0;

  /// The place of [position, position + count), in one piece or two. count <= capacity.
  [[nodiscard]] Regions at(std::uint64_t position, std::size_t count) const {
    const std::size_t start = position & (capacity - 1);
    const std::size_t first = std::min(count, capacity - start);
    return {{data + start, first}, {data, count - first}};
  }
};

/// The writing end. One thread.
class Producer {
 public:
  Producer() = default;
  /// @param head  the word the consumer publishes its position in, in this side's memory
  /// @param tail  where to publish this end's position for the consumer; null: the caller does it with commit's result
  Producer(View view, const layout::Word* head, layout::Word* tail)
      : view_(view), capacity_(view.capacity), head_(head), tail_(tail) {}

  /// From now on uses as little of the ring as if its capacity were `bytes`, at most what it is. Before the first
  /// commit.
  void limit(std::size_t bytes) { capacity_ = std::min(bytes, view_.capacity); }

  /// Space for at most `want` bytes; looks at the consumer's word only when the space known of is too small.
  [[nodiscard]] Regions reserve(std::size_t want) { return view_.at(position_, space_up_to(want)); }

  /// Publishes the next `count` bytes; the caller has checked count <= the last reserve. Returns the new tail.
  std::uint64_t commit(std::size_t count) {
    position_ += count;
    // RING-TAIL release: the bytes just written; pairs with the acquire in Consumer::refresh.
    if (tail_ != nullptr) tail_->store(position_, std::memory_order_release);
    return position_;
  }

  /// Copies as much of `bytes` as fits behind the `uncommitted` bytes copied in since the last commit, and publishes
  /// nothing. Returns how many bytes.
  std::size_t copy_in(std::span<const std::byte> bytes, std::size_t uncommitted = 0);

  /// Looks at the consumer's word again: free bytes now.
  std::size_t space() {
    refresh();
    return known_space();
  }
  [[nodiscard]] std::uint64_t tail() const { return position_; }
  [[nodiscard]] std::size_t fill() const { return position_ - known_head_; }  ///< as last seen
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  [[nodiscard]] std::size_t known_space() const {
    return broken_ ? 0 : capacity_ - static_cast<std::size_t>(position_ - known_head_);
  }
  std::size_t space_up_to(std::size_t want) {
    if (known_space() < want) refresh();
    return std::min(want, known_space());
  }
  void refresh() {
    // RING-HEAD acquire: pairs with the release in return_credit; the bytes before this position have been read and may
    // be overwritten.
    const std::uint64_t head = head_->load(std::memory_order_acquire);
    // It may only move forward, and never beyond what was written. Both at once: distance from the last one seen.
    if (head - known_head_ > position_ - known_head_) {
      broken_ = true;
      return;
    }
    known_head_ = head;
  }

  View view_;
  std::size_t capacity_ = 0;  ///< of the view, or less
  const layout::Word* head_ = nullptr;
  layout::Word* tail_ = nullptr;
  std::uint64_t position_ = 0;
  std::uint64_t known_head_ = 0;
  bool broken_ = false;
};

/// The reading end. One thread.
class Consumer {
 public:
  Consumer() = default;
  /// @param tail  the word the producer publishes its position in, in this side's memory
  /// @param head  where to publish this end's position for the producer; null: the caller does it with return_credit's
  /// result
  Consumer(View view, const layout::Word* tail, layout::Word* head) : view_(view), tail_(tail), head_(head) {}

  /// At most `want` bytes that have arrived; looks at the producer's word only when it knows of fewer than one byte.
  [[nodiscard]] ConstRegions peek(std::size_t want) {
    std::size_t waiting = known_fill();
    if (waiting == 0) {
      refresh();
      waiting = known_fill();
    }
    const Regions regions = view_.at(position_, std::min(want, waiting));
    return {regions.first, regions.second};
  }

  /// Marks the first `count` bytes of the last peek as read. The producer learns it from return_credit.
  void consume(std::size_t count) { position_ += count; }

  /// True when enough was read since the last credit that the producer should hear of it. A quarter of the ring: few
  /// shared stores and fences per byte, and a producer that waits for at most half the ring cannot be forgotten,
  /// because what it waits for is then more than a quarter. The consumer also returns what it owes before it sleeps.
  [[nodiscard]] bool credit_due() const { return position_ - returned_ >= view_.capacity / 4; }
  [[nodiscard]] bool credit_owed() const { return position_ != returned_; }
  /// Publishes this end's position. Returns it.
  std::uint64_t return_credit() {
    returned_ = position_;
    // RING-HEAD release: the bytes read, for overwriting; pairs with the acquire in Producer::refresh.
    if (head_ != nullptr) head_->store(position_, std::memory_order_release);
    return position_;
  }

  /// Copies what is there into `buffer` and consumes it. Returns how many bytes.
  std::size_t copy_out(std::span<std::byte> buffer);

  /// Looks at the producer's word again: bytes waiting now.
  std::size_t fill() {
    refresh();
    return known_fill();
  }
  [[nodiscard]] std::size_t known_fill() const { return broken_ ? 0 : known_tail_ - position_; }
  /// For callers that find elsewhere that the producer breaks the rules.
  void declare_broken() { broken_ = true; }
  [[nodiscard]] std::uint64_t head() const { return position_; }
  [[nodiscard]] std::size_t capacity() const { return view_.capacity; }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void refresh() {
    // RING-TAIL acquire: pairs with the release in commit; the bytes before this position are visible.
    const std::uint64_t tail = tail_->load(std::memory_order_acquire);
    // It may only move forward, and never further than the credit this end has returned allows.
    if (tail - known_tail_ > returned_ + view_.capacity - known_tail_) {
      broken_ = true;
      return;
    }
    known_tail_ = tail;
    // Both lines, that of the tail and that of the bytes, are then on their way at once: a message of 64 bytes between
    // two awake sides takes 280 ns instead of 340.
    arch::prefetch(view_.data + (position_ & (view_.capacity - 1)));
  }

  View view_;
  const layout::Word* tail_ = nullptr;
  layout::Word* head_ = nullptr;
  std::uint64_t position_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t known_tail_ = 0;
  bool broken_ = false;
};

}  // namespace wherry::ring
