// SPDX-License-Identifier: Apache-2.0
// The sending end of this side's section in a peer's mailbox: writes messages into it, and adopts the grants that
// change its size.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include <wherry/mailbox.hpp>

#include "arch/copy.hpp"
#include "mailbox/section.hpp"
#include "mailbox/words.hpp"

namespace wherry::mailbox {

class Outgoing {
 public:
  /// Bytes that must be free before a message begins: padding, its length, and one byte.
  static constexpr std::size_t kLeast = 2 * sizeof(std::uint64_t);

  /// @param overflow  bytes of the overflow behind a section, as in the peer's greeting
  /// @param early  bytes for early data, as in the peer's greeting
  /// Throws std::bad_alloc.
  Outgoing(fabric::Connection& connection, std::size_t overflow, std::size_t early);

  /// As Mailbox::try_send, for an open pair.
  /// @param seen  position up to which this side has read the peer's bytes
  [[nodiscard]] Result try_send(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;

  /// Sends the whole message or nothing, into the section or the overflow. Succeeds if it and all unread bytes, with
  /// the words before each message, are at most seven eighths of the overflow.
  [[nodiscard]] Result try_send_whole(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;

  /// The same for a short message in two parts. It succeeds only between messages, if there is room beside the tail or
  /// contiguously in the section. False: nothing was written.
  [[nodiscard]] bool try_send_short(std::span<const std::byte> head, std::span<const std::byte> rest,
                                    std::uint64_t seen) noexcept {
    return send_at_once(head.size() + rest.size(), seen, [&](std::byte* to) {
      arch::copy_cached(to, head.data(), head.size());
      arch::copy_cached(to + head.size(), rest.data(), rest.size());
    });
  }

  /// Whether a grant of the peer is not adopted yet. Costs a load from this side's own page.
  [[nodiscard]] bool grant_waits() const noexcept {
    // MAILBOX-GRANT acquire: pairs with the release in PeersWords::store.
    return own_.grant.load(std::memory_order_acquire) != grant_.word();
  }
  /// Adopts the peer's grant if the section is drained, also from the overflow. False: it is not, or the grant is
  /// invalid (broken()).
  bool adopt() noexcept;
  /// Whether a message could begin or continue now.
  [[nodiscard]] bool has_room(std::size_t bytes = kLeast) noexcept {
    return (!grant_waits() || adopt()) && (end_overflow(), writer_.room(bytes) >= bytes);
  }
  /// Size of the largest message that fits the section as a whole now. 0: less than `least` and less than an empty
  /// section takes, or the overflow is in use.
  [[nodiscard]] std::size_t room_in_section(std::size_t least) noexcept;
  /// Whether room_in_section(least) is not 0. During another message: whether there is room for the rest of that, which
  /// comes first.
  [[nodiscard]] bool has_room_in_section(std::size_t least) noexcept {
    return rest_ == 0 ? room_in_section(least) != 0 : has_room();
  }
  /// Whether a message of `bytes` could be sent as a whole.
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) noexcept {
    // The rest of another message comes first, so its room counts.
    return rest_ == 0 ? find_place(bytes) != Placement::none : has_room();
  }
  /// Whether the peer offers an overflow, and this side maps it.
  [[nodiscard]] bool may_overflow() const noexcept { return most_overflow_ != 0 && words_.mapped(); }
  /// If the peer has read everything, returns to the section and frees the pages of the overflow.
  void end_overflow() noexcept {
    if (writer_.overflows() && writer_.drained()) leave_overflow();
  }
  [[nodiscard]] bool overflows() const noexcept { return writer_.overflows(); }
  /// Whether a grant waits until the peer has read the section, or the pages of the overflow until it has read
  /// everything. Adopts the grant or frees the pages if the peer has.
  [[nodiscard]] bool waits_to_drain() noexcept {
    if (grant_waits() && !adopt()) return true;
    end_overflow();
    return writer_.overflows();
  }
  /// Tells the peer that nothing follows. False: the fabric knows that the peer is dead.
  bool finish() noexcept { return words_.store(WHERRY_MAILBOX_WORD(finished), writer_.tail() + 1, fabric::Bell::data); }

  [[nodiscard]] std::size_t capacity() const noexcept { return grant_.bytes(); }
  /// How many grants this side has adopted.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] bool broken() const noexcept { return broken_ || writer_.broken(); }

 private:
  /// If a message would leave the section's first page, it begins at the section's start instead. Everything must be
  /// read, and at least this much must have been written since the last start.
  static constexpr std::size_t kLeastToStartAgain = 512;
  /// Longer messages wrap around: a line that is in neither side's private cache is written faster than one that the
  /// reader's cache holds.
  static constexpr std::size_t kMostAtStart = std::size_t{16} << 10;

  static std::size_t padding_at(std::uint64_t position) { return (0 - position) % layout::kMailboxAlign; }

  /// Publishes the next message at once. `copy` writes its `bytes`. False: there is no contiguous room for it.
  template <class Copy>
  bool send_at_once(std::size_t bytes, std::uint64_t seen, Copy&& copy) noexcept {
    if (rest_ != 0 || writer_.overflows() || grant_waits() || !words_.mapped()) return false;
    const std::size_t padding = padding_at(writer_.tail());
    const std::size_t need = padding + sizeof(std::uint64_t) + bytes;
    if (writer_.room(need) < need) return false;
    const bool is_free = writer_.has_read(inlined_end_);
    if (bytes <= layout::kMailboxInlined && is_free) {
      copy(words_.inlined_bytes());
      publish_inlined(bytes, seen);
      return true;
    }
    std::byte* const place = writer_.place_of(need);
    // While the place beside the tail is in use, the section is not drained.
    if (place == nullptr || (is_free && leaves_first_page(bytes) && writer_.drained())) return false;
    const std::uint64_t length = bytes;
    std::memcpy(place + padding, &length, sizeof length);
    copy(place + padding + sizeof length);
    store_seen(seen);
    writer_.skip(need);
    words_.store(WHERRY_MAILBOX_WORD(tail), writer_.publish(), fabric::Bell::data);
    return true;
  }

  enum class Placement : std::uint8_t { none, here, overflow };

  /// Bytes that a message takes, with its padding and length.
  [[nodiscard]] std::uint64_t need(std::uint64_t bytes) const noexcept {
    return padding_at(writer_.tail()) + sizeof(std::uint64_t) + bytes;
  }
  [[nodiscard]] Placement find_place(std::uint64_t bytes) noexcept;
  [[nodiscard]] bool section_replaces_overflow() const noexcept;
  [[nodiscard]] std::size_t overflow_bytes() const noexcept {
    return may_overflow() && grant_.epoch != 0
               ? layout::mailbox_overflow(grant_.bytes(), most_overflow_, words_.section_bytes())
               : 0;
  }
  void leave_overflow() noexcept;
  Result write(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;
  /// Whether the next message should begin at the section's start, if everything was read.
  [[nodiscard]] bool leaves_first_page(std::uint64_t bytes) const noexcept {
    const std::size_t place = writer_.place();
    return !writer_.overflows() && place >= kLeastToStartAgain && place + kLeast + bytes > layout::kMailboxFirstPage &&
           bytes <= kMostAtStart;
  }
  bool begin(const Mailbox::Outgoing& message) noexcept;
  /// Whether the next message can be inlined: only on load/store fabrics, where that is a store and not a put of its
  /// own.
  [[nodiscard]] bool fits_inlined(std::uint64_t bytes) noexcept {
    if (bytes > layout::kMailboxInlined || !words_.mapped()) return false;
    const std::size_t need = padding_at(writer_.tail()) + sizeof(std::uint64_t) + static_cast<std::size_t>(bytes);
    return writer_.room(need) >= need && writer_.has_read(inlined_end_);
  }
  /// Publishes the message that lies beside the tail.
  void publish_inlined(std::size_t bytes, std::uint64_t seen) noexcept {
    const std::size_t padding = padding_at(writer_.tail());
    words_.store_inlined(layout::mailbox_inlined(writer_.tail() + padding, bytes));
    store_seen(seen);
    writer_.skip(padding + sizeof(std::uint64_t) + bytes);
    words_.store(WHERRY_MAILBOX_WORD(tail), writer_.publish(), fabric::Bell::data);
    inlined_end_ = writer_.tail();
  }
  /// The peer polls this line, so an unchanged value is not written again.
  void store_seen(std::uint64_t position) noexcept {
    if (position != stored_seen_) words_.store_seen(stored_seen_ = position);
  }
  [[nodiscard]] std::size_t piece_of(std::uint64_t bytes) const noexcept;
  std::size_t copy(std::span<const iovec> pieces, std::uint64_t skip, std::size_t most) noexcept;
  bool publish() noexcept;

  PeersWords words_;
  const layout::MailboxPage& own_;
  std::byte* staging_ = nullptr;  ///< put fabrics only: a copy of the peer's section, in staging_memory_
  SectionWriter writer_;
  const std::size_t most_overflow_;
  Grant grant_;
  std::size_t piece_ = 0;   ///< most bytes published at once in the section
  std::uint64_t rest_ = 0;  ///< bytes of the current message that are not sent yet
  std::uint64_t changes_ = 0;
  std::uint64_t seen_ = 0;         ///< credit to store with the next tail
  std::uint64_t stored_seen_ = 0;  ///< the value of the peer's `seen` word
  std::uint64_t inlined_end_ = 0;  ///< the inlined message may be overwritten once everything before this was read
  bool broken_ = false;
  std::shared_ptr<std::byte[]> staging_memory_;
};

}  // namespace wherry::mailbox
