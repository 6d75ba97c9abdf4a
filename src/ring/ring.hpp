// SPDX-License-Identifier: Apache-2.0
// A single-producer single-consumer queue of bytes: a view of memory that it does not own. It knows no fabric. May
// include: base, arch, layout.
//
// Two positions count the bytes ever written (tail) and ever read (head). A position is at the offset
// position & (capacity - 1) of the ring. So the fill is tail - head, and a full ring differs from an empty one without
// a spare byte.
//
//      producer's side                             consumer's side
//   +-------------------+   bytes, then tail    +----------------------+
//   | reads head   <----+-----------------------+--- writes head       |
//   | writes tail  -----+-----------------------+--> reads tail        |
//   +-------------------+                       +----------------------+
//
// The word that an end reads lies in its own memory. The end keeps the last value it saw, and reads the shared cache
// line again only when that value is used up. If the peer's memory is mapped, an end publishes its own word by a
// release store. On put fabrics the pointer is null, and the owner of the end sends the returned value to the peer.
//
// Words come from an untrusted process. Each is copied once and checked. A wrong one makes the end `broken` for good.
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

/// Returns `bytes` rounded up to a power of two, within [kMinCapacity, kMaxCapacity].
std::size_t round_capacity(std::size_t bytes);

/// The bytes of a ring. `capacity` is a power of two.
struct View {
  std::byte* data = nullptr;
  std::size_t capacity = 0;

  /// Returns the bytes of [position, position + count), in one piece or two. count <= capacity.
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
  /// @param head  the word in this side's memory in which the consumer publishes its position
  /// @param tail  the word in which this end publishes its position; null: the caller publishes the result of commit
  Producer(View view, const layout::Word* head, layout::Word* tail)
      : view_(view), capacity_(view.capacity), head_(head), tail_(tail) {}

  /// Limits the unread bytes in the ring to `bytes`, if that is less than its capacity. Only before the first commit.
  void limit(std::size_t bytes) { capacity_ = std::min(bytes, view_.capacity); }

  /// Returns free space of at most `want` bytes. Reads the consumer's word only if the known space is too small.
  [[nodiscard]] Regions reserve(std::size_t want) { return view_.at(position_, space_up_to(want)); }

  /// Publishes the next `count` bytes, at most those of the last reserve. Returns the new tail.
  std::uint64_t commit(std::size_t count) {
    position_ += count;
    // RING-TAIL release: the bytes just written; pairs with the acquire in Consumer::refresh.
    if (tail_ != nullptr) tail_->store(position_, std::memory_order_release);
    return position_;
  }

  /// Copies as much of `bytes` as fits behind the `uncommitted` bytes that were copied in since the last commit. It
  /// does not publish them. Returns the number of bytes copied.
  std::size_t copy_in(std::span<const std::byte> bytes, std::size_t uncommitted = 0);

  /// Reads the consumer's word again, and returns the free bytes.
  std::size_t space() {
    refresh();
    return known_space();
  }
  [[nodiscard]] std::uint64_t tail() const { return position_; }
  [[nodiscard]] std::size_t fill() const { return position_ - known_head_; }  ///< unread bytes as last seen
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
    // The head may only move forward, and never past the tail. Distances from the last head check both at once.
    if (head - known_head_ > position_ - known_head_) {
      broken_ = true;
      return;
    }
    known_head_ = head;
  }

  View view_;
  std::size_t capacity_ = 0;  ///< that of the view, or less after limit()
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
  /// @param tail  the word in this side's memory in which the producer publishes its position
  /// @param head  the word in which this end publishes its position; null: the caller publishes the result of
  ///              return_credit
  Consumer(View view, const layout::Word* tail, layout::Word* head) : view_(view), tail_(tail), head_(head) {}

  /// Returns at most `want` arrived bytes. Reads the producer's word only if no unread bytes are known.
  [[nodiscard]] ConstRegions peek(std::size_t want) {
    std::size_t waiting = known_fill();
    if (waiting == 0) {
      refresh();
      waiting = known_fill();
    }
    const Regions regions = view_.at(position_, std::min(want, waiting));
    return {regions.first, regions.second};
  }

  /// Marks the first `count` bytes of the last peek as read. The producer gets the credit by return_credit.
  void consume(std::size_t count) { position_ += count; }

  /// True if a quarter of the ring was read since the last credit, so that credit should be returned. This limits the
  /// shared stores and fences per byte. A producer that waits for at most half the ring is never left waiting: its
  /// missing credit is then more than a quarter. The consumer also returns all credit before it sleeps.
  [[nodiscard]] bool credit_due() const { return position_ - returned_ >= view_.capacity / 4; }
  [[nodiscard]] bool credit_owed() const { return position_ != returned_; }
  /// Publishes this end's position, and returns it.
  std::uint64_t return_credit() {
    returned_ = position_;
    // RING-HEAD release: the bytes read, for overwriting; pairs with the acquire in Producer::refresh.
    if (head_ != nullptr) head_->store(position_, std::memory_order_release);
    return position_;
  }

  /// Copies arrived bytes into `buffer`, and consumes them. Returns their number.
  std::size_t copy_out(std::span<std::byte> buffer);

  /// Reads the producer's word again, and returns the unread bytes.
  std::size_t fill() {
    refresh();
    return known_fill();
  }
  [[nodiscard]] std::size_t known_fill() const { return broken_ ? 0 : known_tail_ - position_; }
  /// For callers that detect a violation of the protocol by the producer elsewhere.
  void declare_broken() { broken_ = true; }
  [[nodiscard]] std::uint64_t head() const { return position_; }
  [[nodiscard]] std::size_t capacity() const { return view_.capacity; }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void refresh() {
    // RING-TAIL acquire: pairs with the release in commit; the bytes before this position are visible.
    const std::uint64_t tail = tail_->load(std::memory_order_acquire);
    // The tail may only move forward, and never further than the returned credit allows.
    if (tail - known_tail_ > returned_ + view_.capacity - known_tail_) {
      broken_ = true;
      return;
    }
    known_tail_ = tail;
    // The cache line of the bytes is then fetched at the same time as that of the tail. A message of 64 bytes between
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
