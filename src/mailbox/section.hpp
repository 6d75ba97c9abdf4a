// SPDX-License-Identifier: Apache-2.0
// The writing and the reading end of a section: a single-writer single-reader queue of bytes in memory that neither end
// owns. It differs from ring/ring.hpp: the capacity is any multiple of a line, and it changes while the queue is empty.
// Behind the section lies the overflow, a second such queue. The writer enters it if the section is full, and leaves it
// once both are drained. While the overflow is in use, the capacity of the section changes once the section is drained.
//
// May include: base, arch, layout; knows no fabric.
//
// Positions count all bytes ever written (tail) and read (head). Each end keeps the offset of its position in the
// memory beside it. The offset wraps by a comparison, not by a modulo. Position and offset are equal modulo 8, also
// after the capacity changes in the middle of a message. A length (8 bytes) is therefore always contiguous.
//
// The peer is not trusted. Each of its words is copied once and checked; an invalid one makes the end `broken` for
// good.
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

/// Returns to the system the whole pages between offsets `kept` and `had` of an area, which neither side uses. The
/// kernel frees them only if other processes map the memory, too.
inline void give_back_pages(std::byte* area, std::size_t kept, std::size_t had) {
  constexpr std::size_t kPage = 4096;
  const auto next_page = [](std::byte* address) {
    return address + (0 - reinterpret_cast<std::uintptr_t>(address)) % kPage;
  };
  std::byte* const from = next_page(area + kept);
  std::byte* const to = next_page(area + had);
  if (from < to) ::madvise(from, static_cast<std::size_t>(to - from), MADV_REMOVE);
}

/// The part of the memory that is in use (the section or the overflow), and the offset of this end's position in it.
struct Place {
  std::byte* area = nullptr;
  std::size_t capacity = 0;
  std::size_t at = 0;  ///< offset of this end's position

  void restart(std::size_t bytes, std::uint64_t position) {
    capacity = bytes;
    at = position % layout::kMailboxAlign;
  }
  [[nodiscard]] std::size_t after(std::size_t bytes) const {
    const std::size_t place = at + bytes;
    return place < capacity ? place : place - capacity;
  }
  /// The `bytes` that begin `skip` bytes after this end's position. skip < capacity, bytes <= capacity.
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
  /// @param head  the word in this side's memory in which the reader publishes its position
  /// @param seen  a second such word, which the reader stores along with its own messages; it may be older or newer
  SectionWriter(std::byte* area, const layout::Word* head, const layout::Word* seen)
      : place_{.area = area}, head_(head), seen_(seen), area_(area) {}

  /// Sets the capacity of the section. Only while it is known to be drained. The next bytes go to its start, unless the
  /// overflow is in use.
  void resize(std::size_t capacity) {
    assert(is_section_known_drained());
    capacity_ = capacity;
    if (!overflows_) restart();
  }
  /// Continues at the start of the section. Only while everything is known to be read.
  void restart() {
    assert(known_head_ == position_);
    overflows_ = false;
    place_.area = area_;
    place_.restart(capacity_, position_);
  }
  /// Continues in the overflow, which has `bytes` bytes, a multiple of kMailboxAlign. Only while nothing is
  /// unpublished.
  void overflow(std::size_t bytes) {
    overflows_ = true;
    from_ = position_;
    place_.area = area_ + capacity_;
    place_.restart(bytes, position_);
  }
  [[nodiscard]] bool overflows() const { return overflows_; }
  /// Bytes from the start of the section within which everything written since the last restart lies.
  [[nodiscard]] std::size_t reach() const {
    if (!overflows_) return capacity_;
    const std::uint64_t used = std::min<std::uint64_t>(place_.capacity, in_overflow() + layout::kMailboxAlign);
    return static_cast<std::size_t>(place_.area - area_) + static_cast<std::size_t>(used);
  }
  /// Offset of the next bytes in the section, or in the overflow if that is in use.
  [[nodiscard]] std::size_t place() const { return place_.at; }

  /// Returns how many bytes can be written now. Reads the reader's words only if the known room is less than `want`.
  std::size_t room(std::size_t want) {
    if (known_room() < want) refresh();
    return known_room();
  }
  /// Whether the reader has read everything published.
  bool drained() {
    if (known_head_ != position_) refresh();
    return known_head_ == position_;
  }

  /// Whether the reader has read everything in the section. While the overflow is in use, the reader must also have
  /// read a part of it. It then knows where the overflow begins, which it cannot compute from a new size of the
  /// section.
  bool section_drained() {
    if (!is_section_known_drained()) refresh();
    return is_section_known_drained();
  }

  /// Whether the reader has read everything before `position`. position <= tail()
  bool has_read(std::uint64_t position) {
    const std::uint64_t after = position_ - position;
    if (position_ - known_head_ > after) refresh();
    return position_ - known_head_ <= after;
  }

  /// Appends to what was written since the last publish. bytes.size() <= room(); an empty span is allowed at capacity
  /// 0.
  void write(std::span<const std::byte> bytes) {
    const Regions to = place_.range(unpublished_, bytes.size());
    arch::copy_into_shared(to.first.data(), bytes.data(), to.first.size());
    if (!to.second.empty()) {
      arch::copy_into_shared(to.second.data(), bytes.data() + to.first.size(), to.second.size());
    }
    unpublished_ += bytes.size();
  }
  /// The address of the next `bytes` if they are contiguous, else null. Only while nothing is unpublished.
  [[nodiscard]] std::byte* place_of(std::size_t bytes) const {
    assert(unpublished_ == 0);
    return bytes <= place_.capacity - place_.at ? place_.area + place_.at : nullptr;
  }
  /// Counts `bytes` as written without touching them: padding, or bytes written in place.
  void skip(std::size_t bytes) { unpublished_ += bytes; }
  /// The bytes written since the last publish.
  [[nodiscard]] Regions unpublished() const { return place_.range(0, unpublished_); }
  [[nodiscard]] std::size_t unpublished_bytes() const { return unpublished_; }
  /// Returns the new tail, which the caller stores in the word that the reader reads.
  std::uint64_t publish() {
    place_.at = place_.after(unpublished_);
    position_ += unpublished_;
    unpublished_ = 0;
    return position_;
  }

  [[nodiscard]] std::uint64_t tail() const { return position_; }
  /// Of the section, or of the overflow if that is in use.
  [[nodiscard]] std::size_t capacity() const { return place_.capacity; }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  [[nodiscard]] std::size_t known_room() const {
    std::uint64_t unread = position_ - known_head_;
    // Some of the unread bytes may still lie in the section.
    if (overflows_) [[unlikely]]
      unread = std::min(unread, in_overflow());
    return broken_ ? 0 : place_.capacity - static_cast<std::size_t>(unread) - unpublished_;
  }
  [[nodiscard]] bool is_section_known_drained() const {
    const std::uint64_t unread = position_ - known_head_;
    return unread == 0 || unread < in_overflow();
  }
  /// Bytes published since this end entered the overflow. 0: it is in the section.
  [[nodiscard]] std::uint64_t in_overflow() const { return overflows_ ? position_ - from_ : 0; }
  void refresh() {
    // MAILBOX-HEAD acquire: pairs with the release in Incoming::return_credit; the bytes before this position have been
    // read and may be overwritten.
    const std::uint64_t head = head_->load(std::memory_order_acquire);
    // MAILBOX-SEEN acquire: pairs with the release in PeersWords::store_seen.
    const std::uint64_t seen = seen_->load(std::memory_order_acquire);
    if (head != last_head_ || seen != last_seen_) take(head, seen);
  }
  void take(std::uint64_t head, std::uint64_t seen) {
    // The head only moves forward, and never beyond the tail.
    if (head - last_head_ > position_ - last_head_) {
      broken_ = true;
      return;
    }
    last_head_ = head;
    last_seen_ = seen;
    advance_known_head(head);
    advance_known_head(seen);
  }
  /// Moves known_head_ forward to `head`, unless `head` is older: one of the two words may be stale.
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
  std::uint64_t from_ = 0;    ///< position at which the overflow begins; used only if overflows_
};

/// The reading end.
class SectionReader {
 public:
  SectionReader() = default;
  explicit SectionReader(std::byte* area) : place_{.area = area}, area_(area) {}

  /// Sets the capacity of the section. Only while everything was read, or if `in_overflow`, a part of the overflow; and
  /// the writer was told so.
  void resize(std::size_t capacity, bool in_overflow = false) {
    const bool allowed =
        in_overflow ? where_ == Where::overflow && reported_ > from_ : where_ == Where::section && drained();
    if (!allowed) broken_ = true;
    capacity_ = capacity;
    if (!in_overflow) enter_section();
  }
  /// Follows SectionWriter::restart at the same position, when all bytes before it were read.
  void restart() {
    if (where_ == Where::overflow) {
      broken_ = true;
    } else {
      place_.restart(capacity_, position_);
    }
  }
  /// The bytes from position `from` on lie in the overflow, which has `bytes` bytes. Call it before see() with the next
  /// tail.
  void overflow(std::uint64_t from, std::size_t bytes) {
    // The writer enters the overflow only from the section, and only at a position for which it had credit.
    if (where_ != Where::section || bytes == 0 || from - known_tail_ > reported_ + place_.capacity - known_tail_) {
      broken_ = true;
      return;
    }
    where_ = Where::before_overflow;
    from_ = from;
    overflow_bytes_ = bytes;
    if (position_ == from_) enter_overflow();
  }
  /// The writer has returned to the section. It may do so only after everything was read.
  void leave_overflow() {
    if (!drained()) broken_ = true;
    enter_section();
  }
  /// Whether all bytes in the section were read, and the next bytes are in the overflow.
  [[nodiscard]] bool overflows() const { return where_ == Where::overflow; }
  /// Whether all bytes known to have arrived were read, and the writer was told so.
  [[nodiscard]] bool drained() const { return position_ == known_tail_ && position_ == reported_; }

  /// Stores the writer's position, after checking it.
  void see(std::uint64_t tail) {
    if (tail == known_tail_) {
      // The prefetch lets a polling reader receive the line of the next bytes as soon as it is written, not only after
      // it sees the tail.
      arch::prefetch(place_.area + place_.at);
      return;
    }
    // The tail only moves forward, and never beyond the credit that this end has given.
    if (tail - known_tail_ > end() - known_tail_) {
      broken_ = true;
      return;
    }
    known_tail_ = tail;
    // The line of the bytes then arrives while the caller returns.
    arch::prefetch(place_.area + place_.at);
  }
  /// The writer's position as last seen.
  [[nodiscard]] std::uint64_t known_tail() const { return known_tail_; }
  /// Arrived bytes that can be read in sequence, up to the start of the overflow; as last seen.
  [[nodiscard]] std::size_t fill() const {
    if (broken_) return 0;
    const std::uint64_t arrived = known_tail_ - position_;
    if (where_ != Where::before_overflow) [[likely]]
      return static_cast<std::size_t>(arrived);
    return static_cast<std::size_t>(std::min(arrived, from_ - position_));
  }
  /// The `bytes` arrived bytes that follow the next `skip`. skip + bytes <= fill().
  [[nodiscard]] ConstRegions peek(std::size_t bytes, std::size_t skip = 0) const {
    const Regions found = place_.range(skip, bytes);
    return {found.first, found.second};
  }
  /// The word that follows the next `skip` bytes. It must be at a multiple of 8, and is therefore contiguous.
  [[nodiscard]] std::uint64_t word(std::size_t skip) const {
    std::uint64_t result = 0;
    std::memcpy(&result, place_.area + place_.after(skip), sizeof result);
    return result;
  }
  /// Marks the next `bytes` as read. bytes <= fill()
  void consume(std::size_t bytes) {
    place_.at = place_.after(bytes);
    position_ += bytes;
    if (where_ == Where::before_overflow && position_ == from_) [[unlikely]]
      enter_overflow();
  }

  [[nodiscard]] std::size_t owed() const { return static_cast<std::size_t>(position_ - returned_); }
  /// Whether so much credit is owed that it should be returned: a quarter of the section, or an eighth of the overflow
  /// while that is in use. Small sections return each credit at once: a few messages fill them.
  [[nodiscard]] bool should_return_credit() const { return owed() >= credit_step_; }
  /// Returns the new head, which the caller stores in the writer's `head` word.
  std::uint64_t return_credit() { return returned_ = reported_ = position_; }
  /// Returns the new head for the writer's `seen` word, stored along with a message. The credit remains owed: `seen`
  /// wakes no writer that waits for room.
  std::uint64_t piggyback_credit() { return reported_ = position_; }

  [[nodiscard]] std::uint64_t head() const { return position_; }
  /// Of the section, also while the overflow is in use.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool broken() const { return broken_; }
  void declare_broken() { broken_ = true; }

 private:
  /// Where the next bytes are read. before_overflow: in the section up to `from_`, then in the overflow.
  enum class Where : std::uint8_t { section, before_overflow, overflow };

  /// Sections of at most this many bytes return credit with every message.
  static constexpr std::size_t kTiny = 1024;

  void enter_section() {
    where_ = Where::section;
    place_.area = area_;
    place_.restart(capacity_, position_);
    credit_step_ = capacity_ <= kTiny ? 0 : capacity_ / 4;
  }
  void enter_overflow() {
    where_ = Where::overflow;
    place_.area = area_ + capacity_;
    place_.restart(overflow_bytes_, position_);
    credit_step_ = std::min(credit_step_, overflow_bytes_ / 8);
  }
  /// The largest tail that the writer's credit allows.
  [[nodiscard]] std::uint64_t end() const {
    if (where_ == Where::section) [[likely]]
      return reported_ + place_.capacity;
    return std::max(reported_, from_) + overflow_bytes_;
  }

  Place place_;
  std::uint64_t position_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t reported_ = 0;  ///< to the writer, by `head` or `seen`
  std::uint64_t known_tail_ = 0;
  bool broken_ = false;
  Where where_ = Where::section;
  std::byte* area_ = nullptr;
  std::size_t capacity_ = 0;     ///< the section's
  std::size_t credit_step_ = 0;  ///< owed bytes for which credit is returned
  std::size_t overflow_bytes_ = 0;
  std::uint64_t from_ = 0;  ///< position at which the overflow begins; used only outside Where::section
};

}  // namespace wherry::mailbox
