// SPDX-License-Identifier: Apache-2.0
// The two ends of a section: a queue of bytes with one writer and one reader in memory that neither end owns. As
// ring/ring.hpp, but its capacity is any multiple of a line, and changes while it is empty. Behind it lies the
// overflow, which is filled once from the front, and left once it is empty. May include: base, arch, layout; knows no
// fabric.
//
// Positions count bytes ever written (tail) and read (head). A position's place is kept beside it, and wraps by a
// comparison. Place and position agree modulo 8, also when the capacity changes in the middle of a message, so that a
// length never wraps.
//
// Words come from a process that is not trusted: each is copied once and checked, and a wrong one makes the end
// `broken` for good.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wherry/result.hpp>

#include "arch/prefetch.hpp"
#include "arch/shared_copy.hpp"
#include "layout/mailbox_page.hpp"

namespace wherry::mailbox {

/// Gives whole pages back to the system: of the bytes up to `had` of an area those from `kept` on, which neither side
/// uses. Only where other processes map the memory does the kernel take it.
inline void give_back_pages(std::byte* area, std::size_t kept, std::size_t had) {
  constexpr std::size_t kPage = 4096;
  const auto next_page = [](std::byte* address) {
    return address + (0 - reinterpret_cast<std::uintptr_t>(address)) % kPage;
  };
  std::byte* const from = next_page(area + kept);
  std::byte* const to = next_page(area + had);
  if (from < to) ::madvise(from, static_cast<std::size_t>(to - from), MADV_REMOVE);
}

/// The memory of a section as far as it is in use.
struct Place {
  std::byte* area = nullptr;
  std::size_t capacity = 0;
  std::size_t at = 0;  ///< of this end's position

  void restart(std::size_t bytes, std::uint64_t position) {
    capacity = bytes;
    at = position % layout::kMailboxAlign;
  }
  [[nodiscard]] std::size_t after(std::size_t bytes) const {
    const std::size_t place = at + bytes;
    return place < capacity ? place : place - capacity;
  }
  /// `bytes` from `skip` bytes behind this end's position on. skip < capacity, bytes <= capacity.
  [[nodiscard]] Regions range(std::size_t skip, std::size_t bytes) const {
    if (capacity == 0) return {};
    const std::size_t start = after(skip);
    const std::size_t first = std::min(bytes, capacity - start);
    return {{area + start, first}, {area, bytes - first}};
  }
};

/// The writing end.
class SectionWriter {
 public:
  SectionWriter() = default;
  /// @param head  the word that the reader publishes its position in, in this side's memory
  /// @param seen  the word that it publishes an older or newer one in, where that costs nothing
  SectionWriter(std::byte* area, const layout::Word* head, const layout::Word* seen)
      : place_{.area = area}, head_(head), seen_(seen), area_(area) {}

  /// From now on the section has `capacity` bytes, and the next ones go there. Only while all is drained, and known to
  /// be.
  void resize(std::size_t capacity) {
    assert(known_head_ == position_);
    capacity_ = capacity;
    overflows_ = false;
    place_.area = area_;
    place_.restart(capacity, position_);
  }

  /// Goes on at the start of the section. Only while all is drained, and known to be.
  void restart() { resize(capacity_); }
  /// Goes on behind the section, where `bytes` are free. Nothing is unpublished.
  void overflow(std::size_t bytes) {
    overflows_ = true;
    place_.area = area_ + capacity_;
    place_.restart(bytes, position_);
  }
  [[nodiscard]] bool overflows() const { return overflows_; }
  /// Bytes from the start of the section to the last that was written since the last restart in the section.
  [[nodiscard]] std::size_t reach() const { return overflows_ ? capacity_ + place_.at : capacity_; }
  /// Bytes from the start of the section to where the next ones go.
  [[nodiscard]] std::size_t place() const { return place_.at; }

  /// Bytes that can be written now; looks at the reader's word only when it knows of fewer than `want`.
  std::size_t room(std::size_t want) {
    if (known_room() < want) refresh();
    return known_room();
  }
  /// Whether everything published was read.
  bool drained() {
    if (known_head_ != position_) refresh();
    return known_head_ == position_;
  }

  /// Whether everything before `position` was read. position <= tail()
  bool has_read(std::uint64_t position) {
    const std::uint64_t after = position_ - position;
    if (position_ - known_head_ > after) refresh();
    return position_ - known_head_ <= after;
  }

  /// Copies behind what was written since the last publish. bytes.size() <= room(), or beyond 0 is nothing.
  void write(std::span<const std::byte> bytes) {
    const Regions to = place_.range(unpublished_, bytes.size());
    arch::copy_into_shared(to.first.data(), bytes.data(), to.first.size());
    if (!to.second.empty()) {
      arch::copy_into_shared(to.second.data(), bytes.data() + to.first.size(), to.second.size());
    }
    unpublished_ += bytes.size();
  }
  /// Where the next `bytes` lie if they do so in one piece, else null. Only while nothing is unpublished.
  [[nodiscard]] std::byte* place_of(std::size_t bytes) const {
    assert(unpublished_ == 0);
    return bytes <= place_.capacity - place_.at ? place_.area + place_.at : nullptr;
  }
  /// Leaves `bytes` as they are: padding, or written already.
  void skip(std::size_t bytes) { unpublished_ += bytes; }
  /// Where what was written since the last publish lies.
  [[nodiscard]] Regions unpublished() const { return place_.range(0, unpublished_); }
  [[nodiscard]] std::size_t unpublished_bytes() const { return unpublished_; }
  /// The new tail, which the caller stores where the reader looks.
  std::uint64_t publish() {
    place_.at = place_.after(unpublished_);
    position_ += unpublished_;
    unpublished_ = 0;
    return position_;
  }

  [[nodiscard]] std::uint64_t tail() const { return position_; }
  /// Of the section or the overflow, whichever the next bytes go to.
  [[nodiscard]] std::size_t capacity() const { return place_.capacity; }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  [[nodiscard]] std::size_t known_room() const {
    if (overflows_) [[unlikely]]
      return broken_ ? 0 : layout::mailbox_overflow_room(place_.capacity - place_.at - unpublished_, 0);
    return broken_ ? 0 : place_.capacity - static_cast<std::size_t>(position_ - known_head_) - unpublished_;
  }
  void refresh() {
    // MAILBOX-HEAD acquire: pairs with the release in Incoming::return_credit; the bytes before this position have been
    // read and may be overwritten.
    const std::uint64_t head = head_->load(std::memory_order_acquire);
    // MAILBOX-SEEN acquire: pairs with the release in PeersWords::store_seen.
    const std::uint64_t seen = seen_->load(std::memory_order_acquire);
    if (head != last_head_ || seen != last_seen_) take(head, seen);
  }
  void take(std::uint64_t head, std::uint64_t seen) {
    // It may only move forward, and never beyond what was written.
    if (head - last_head_ > position_ - last_head_) {
      broken_ = true;
      return;
    }
    last_head_ = head;
    last_seen_ = seen;
    advance_known_head(head);
    advance_known_head(seen);
  }
  /// The reader has come as far as this, unless that is known already: one of the two words may be older.
  void advance_known_head(std::uint64_t head) {
    if (head - known_head_ <= position_ - known_head_) known_head_ = head;
  }

  Place place_;
  const layout::Word* head_ = nullptr;
  const layout::Word* seen_ = nullptr;
  std::uint64_t position_ = 0;
  std::uint64_t known_head_ = 0;
  std::uint64_t last_head_ = 0;  ///< as last seen in head_
  std::uint64_t last_seen_ = 0;  ///< as last seen in seen_
  std::size_t unpublished_ = 0;
  bool broken_ = false;
  bool overflows_ = false;
  std::byte* area_ = nullptr;
  std::size_t capacity_ = 0;  ///< the section's
};

/// The reading end.
class SectionReader {
 public:
  SectionReader() = default;
  explicit SectionReader(std::byte* area) : place_{.area = area}, area_(area) {}

  /// From now on the section has `capacity` bytes. Only while it is drained.
  void resize(std::size_t capacity) {
    capacity_ = capacity;
    where_ = Where::section;
    place_.area = area_;
    place_.restart(capacity, position_);
  }
  /// The same as SectionWriter::restart in the section, at the same position: all bytes before it were read.
  void restart() {
    if (where_ == Where::overflow) {
      broken_ = true;
    } else {
      place_.restart(capacity_, position_);
    }
  }
  /// The bytes from this position on lie in the overflow, of `bytes`. To be called before see() with the next tail.
  void overflow(std::uint64_t from, std::size_t bytes) {
    // Only from the section, and where the writer had credit.
    if (where_ != Where::section || bytes == 0 || from - known_tail_ > reported_ + place_.capacity - known_tail_) {
      broken_ = true;
      return;
    }
    where_ = Where::before_overflow;
    from_ = from;
    overflow_bytes_ = bytes;
    if (position_ == from_) enter_overflow();
  }
  /// The writer has come back to the section, as only one may that has nothing left to be read.
  void leave_overflow() {
    if (!drained()) broken_ = true;
    resize(capacity_);
  }
  [[nodiscard]] bool overflows() const { return where_ == Where::overflow; }
  /// Whether all that is known to have come was read, and this was reported to the writer.
  [[nodiscard]] bool drained() const { return position_ == known_tail_ && position_ == reported_; }

  /// Takes note of the writer's position.
  void see(std::uint64_t tail) {
    if (tail == known_tail_) {
      // A reader that polls has the next bytes' line on its way as soon as it is written, not only once it sees the
      // tail.
      arch::prefetch(place_.area + place_.at);
      return;
    }
    // It may only move forward, and never further than the credit that this end has given allows.
    if (tail - known_tail_ > end() - known_tail_) {
      broken_ = true;
      return;
    }
    known_tail_ = tail;
    // The line of the bytes is then on its way while the caller returns.
    arch::prefetch(place_.area + place_.at);
  }
  /// The writer's position as last seen.
  [[nodiscard]] std::uint64_t known_tail() const { return known_tail_; }
  /// Bytes that have arrived and lie one behind the other, as last seen.
  [[nodiscard]] std::size_t fill() const {
    if (broken_) return 0;
    const std::uint64_t arrived = known_tail_ - position_;
    if (where_ != Where::before_overflow) [[likely]]
      return static_cast<std::size_t>(arrived);
    return static_cast<std::size_t>(std::min(arrived, from_ - position_));
  }
  /// Where `bytes` of them lie, behind `skip`. skip + bytes <= fill().
  [[nodiscard]] ConstRegions peek(std::size_t bytes, std::size_t skip = 0) const {
    const Regions found = place_.range(skip, bytes);
    return {found.first, found.second};
  }
  /// The word behind `skip` bytes, at a multiple of 8, and so in one piece.
  [[nodiscard]] std::uint64_t word(std::size_t skip) const {
    std::uint64_t result = 0;
    std::memcpy(&result, place_.area + place_.after(skip), sizeof result);
    return result;
  }
  /// The first `bytes` have been read. bytes <= fill()
  void consume(std::size_t bytes) {
    place_.at = place_.after(bytes);
    position_ += bytes;
    if (where_ == Where::before_overflow && position_ == from_) [[unlikely]]
      enter_overflow();
  }

  [[nodiscard]] std::size_t owed() const { return static_cast<std::size_t>(position_ - returned_); }
  /// The new head, which the caller stores where the writer looks.
  std::uint64_t return_credit() { return returned_ = reported_ = position_; }
  /// The same beside a message of this side. The credit remains owed, because it wakes no writer that waits for room.
  std::uint64_t piggyback_credit() { return reported_ = position_; }

  [[nodiscard]] std::uint64_t head() const { return position_; }
  /// The section's.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool broken() const { return broken_; }
  void declare_broken() { broken_ = true; }

 private:
  /// Where the next bytes are read; before_overflow: in the section up to `from_`.
  enum class Where : std::uint8_t { section, before_overflow, overflow };

  void enter_overflow() {
    where_ = Where::overflow;
    place_.area = area_ + capacity_;
    place_.restart(overflow_bytes_, position_);
  }
  /// The furthest position that the writer may have come to.
  [[nodiscard]] std::uint64_t end() const {
    if (where_ == Where::section) [[likely]]
      return reported_ + place_.capacity;
    return from_ + layout::mailbox_overflow_room(overflow_bytes_, from_);
  }

  Place place_;
  std::uint64_t position_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t reported_ = 0;  ///< to the writer, by either word
  std::uint64_t known_tail_ = 0;
  bool broken_ = false;
  Where where_ = Where::section;
  std::byte* area_ = nullptr;
  std::size_t capacity_ = 0;  ///< the section's
  std::size_t overflow_bytes_ = 0;
  std::uint64_t from_ = 0;  ///< where the overflow begins, unless all is in the section
};

}  // namespace wherry::mailbox
