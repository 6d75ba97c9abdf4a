// SPDX-License-Identifier: Apache-2.0
// This side's section in the mailbox of a peer: writes messages into it, and adopts the grants that change its size.
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
  /// What a message that begins needs: padding, its length, and one byte.
  static constexpr std::size_t kLeast = 2 * sizeof(std::uint64_t);

  /// @param overflow  bytes that the peer's greeting offers for a section and its overflow
  /// @param early  bytes that it offers for early data
  /// Throws std::bad_alloc.
  Outgoing(fabric::Connection& connection, std::size_t overflow, std::size_t early);

  /// As Mailbox::try_send, for a peer that lives.
  /// @param seen  how far this side has read what the peer sends
  [[nodiscard]] Result try_send(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;

  /// The whole message or nothing, into the section or the overflow. Not beyond what mailbox_overflow() says of both.
  [[nodiscard]] Result try_send_whole(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;

  /// The same for a short message in two parts, if it is to be the next and there is room for it beside the tail, or in
  /// one piece in the section. False: nothing was written.
  [[nodiscard]] bool try_send_short(std::span<const std::byte> head, std::span<const std::byte> rest,
                                    std::uint64_t seen) noexcept {
    return send_at_once(head.size() + rest.size(), seen, [&](std::byte* to) {
      arch::copy_cached(to, head.data(), head.size());
      arch::copy_cached(to + head.size(), rest.data(), rest.size());
    });
  }

  /// Whether the peer has changed the section's size and this side has not followed: a load of the own page.
  [[nodiscard]] bool grant_waits() const noexcept {
    // MAILBOX-GRANT acquire: pairs with the release in PeersWords::store.
    return own_.grant.load(std::memory_order_acquire) != grant_.word();
  }
  /// Follows the peer's grant if the section is drained. False: it is not, or the grant is nonsense (broken()).
  bool adopt() noexcept;
  /// Whether a message could begin or go on now.
  [[nodiscard]] bool has_room(std::size_t bytes = kLeast) noexcept {
    return (!grant_waits() || adopt()) && (end_overflow(), writer_.room(bytes) >= bytes);
  }
  /// Bytes that a message may have now to go as a whole into the section. 0: fewer than `least`, or than an empty
  /// section takes if those are fewer; or the overflow is in use.
  [[nodiscard]] std::size_t room_in_section(std::size_t least) noexcept;
  /// Whether there are `least` of them, or room for the rest of another message, which comes first.
  [[nodiscard]] bool has_room_in_section(std::size_t least) noexcept {
    return rest_ == 0 ? room_in_section(least) != 0 : has_room();
  }
  /// Whether a message of so many bytes could go as a whole.
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) noexcept {
    // The rest of another message comes first, so room for that is what counts.
    return rest_ == 0 ? find_place(bytes) != Placement::none : has_room();
  }
  /// Whether the peer has an overflow for this side.
  [[nodiscard]] bool may_overflow() const noexcept { return most_overflow_ != 0 && words_.mapped(); }
  /// Comes back to the section once everything was read. The overflow's pages are the system's again.
  void end_overflow() noexcept {
    if (writer_.overflows() && writer_.drained()) leave_overflow();
  }
  [[nodiscard]] bool overflows() const noexcept { return writer_.overflows(); }
  /// Whether something of this side's waits until the peer has read everything, though there is nothing to send: a
  /// grant, or the pages of the overflow. Does it if the peer has.
  [[nodiscard]] bool waits_to_drain() noexcept {
    if (grant_waits()) return !adopt();
    end_overflow();
    return writer_.overflows();
  }
  /// Nothing will follow. False: the peer is dead already.
  bool finish() noexcept { return words_.store(WHERRY_MAILBOX_WORD(finished), writer_.tail() + 1, fabric::Bell::data); }

  [[nodiscard]] std::size_t capacity() const noexcept { return grant_.bytes(); }
  /// How often this side followed a grant.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] bool broken() const noexcept { return broken_ || writer_.broken(); }

 private:
  /// A message that would go beyond the section's first page begins at its start, if everything before it was read and
  /// so much was written since the last start.
  static constexpr std::size_t kLeastToStartAgain = 512;
  /// Longer ones go round: a line that has left both sides' own caches is written sooner than one that the reader has.
  static constexpr std::size_t kMostAtStart = std::size_t{16} << 10;

  static std::size_t padding_at(std::uint64_t position) { return (0 - position) % layout::kMailboxAlign; }

  /// A message that is to be the next, published once. `copy` writes its `bytes`. False: there is no room for it in one
  /// piece.
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
    // Not drained while the place beside the tail is taken.
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

  /// Bytes that a message takes with what goes before it.
  [[nodiscard]] std::uint64_t need(std::uint64_t bytes) const noexcept {
    return padding_at(writer_.tail()) + sizeof(std::uint64_t) + bytes;
  }
  [[nodiscard]] Placement find_place(std::uint64_t bytes) noexcept;
  [[nodiscard]] bool may_delay_grant() noexcept;
  [[nodiscard]] std::size_t overflow_bytes() const noexcept {
    return may_overflow() && grant_.epoch != 0
               ? layout::mailbox_overflow(grant_.bytes(), most_overflow_, words_.section_bytes())
               : 0;
  }
  void leave_overflow() noexcept;
  Result write(Mailbox::Outgoing& message, std::uint64_t seen) noexcept;
  /// Whether a message that begins should do so at the section's start, if it can.
  [[nodiscard]] bool leaves_first_page(std::uint64_t bytes) const noexcept {
    const std::size_t place = writer_.place();
    return !writer_.overflows() && place >= kLeastToStartAgain && place + kLeast + bytes > layout::kMailboxFirstPage &&
           bytes <= kMostAtStart;
  }
  bool begin(const Mailbox::Outgoing& message) noexcept;
  /// Whether a message that begins can lie beside the tail: only where that is one store, not a put of its own.
  [[nodiscard]] bool fits_inlined(std::uint64_t bytes) noexcept {
    if (bytes > layout::kMailboxInlined || !words_.mapped()) return false;
    const std::size_t need = padding_at(writer_.tail()) + sizeof(std::uint64_t) + static_cast<std::size_t>(bytes);
    return writer_.room(need) >= need && writer_.has_read(inlined_end_);
  }
  /// The message that lies beside the tail.
  void publish_inlined(std::size_t bytes, std::uint64_t seen) noexcept {
    const std::size_t padding = padding_at(writer_.tail());
    words_.store_inlined(layout::mailbox_inlined(writer_.tail() + padding, bytes));
    store_seen(seen);
    writer_.skip(padding + sizeof(std::uint64_t) + bytes);
    words_.store(WHERRY_MAILBOX_WORD(tail), writer_.publish(), fabric::Bell::data);
    inlined_end_ = writer_.tail();
  }
  /// The line is the one that the peer polls: it is not written again for what it says already.
  void store_seen(std::uint64_t position) noexcept {
    if (position != stored_seen_) words_.store_seen(stored_seen_ = position);
  }
  std::size_t copy(std::span<const iovec> pieces, std::uint64_t skip, std::size_t most) noexcept;
  bool publish() noexcept;

  PeersWords words_;
  const layout::MailboxPage& own_;
  std::byte* staging_ = nullptr;  ///< on put fabrics only, staging_memory_: a copy of the peer's section
  SectionWriter writer_;
  const std::size_t most_overflow_;
  Grant grant_;
  std::uint64_t delayed_ = 0;       ///< the word of a grant that this side has not followed though it wrote
  std::uint64_t delayed_from_ = 0;  ///< the tail when it did first
  std::size_t piece_ = 0;           ///< bytes that are published at once, at most
  std::uint64_t rest_ = 0;          ///< of the message under way
  std::uint64_t changes_ = 0;
  std::uint64_t seen_ = 0;         ///< credit that goes with the next tail
  std::uint64_t stored_seen_ = 0;  ///< as the peer has it
  std::uint64_t inlined_end_ = 0;  ///< what stands beside the tail stays until everything before this was read
  bool broken_ = false;
  std::shared_ptr<std::byte[]> staging_memory_;
};

}  // namespace wherry::mailbox
