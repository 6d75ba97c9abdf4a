// SPDX-License-Identifier: Apache-2.0
// A peer's section in this side's mailbox: finds the messages in it, gives credit, and changes its size. May include:
// base, arch, layout, fabric.
#pragma once

#include <algorithm>
#include <cerrno>

#include <wherry/mailbox.hpp>

#include "mailbox/section.hpp"
#include "mailbox/words.hpp"

namespace wherry::mailbox {

class Incoming {
 public:
  /// @param overflow  bytes that this side's greeting offers for a section and its overflow
  /// @param early  bytes that it offers for early data
  Incoming(fabric::Connection& connection, std::size_t overflow, std::size_t early);

  /// Lines that the memory behind the words has.
  [[nodiscard]] std::uint32_t most_lines() const noexcept { return most_lines_; }

  /// Finds the next piece: of a message that is under way, or the beginning of another. False: nothing has come.
  [[nodiscard]] bool find(Mailbox::Piece& piece) noexcept {
    std::size_t fill = 0;
    if (!parse(fill)) return false;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(rest_, fill));
    const std::uint64_t offset = length_ - rest_;
    piece.message_bytes = length_;
    piece.offset = offset;
    piece.bytes = inlined_ ? ConstRegions{{own_.inlined_bytes + offset, n}, {}} : reader_.peek(n);
    piece.more = fill > n;
    return true;
  }
  /// Whether bytes have come that were not consumed, as last seen.
  [[nodiscard]] bool has_known() const noexcept { return reader_.fill() != 0; }
  /// Whether there is nothing to be found, and the peer has stored nothing since. Most looks find that, and
  /// read two lines only. An empty message has begun once its length was read, and is still to be found.
  [[nodiscard]] bool is_silent() const noexcept {
    return reader_.fill() == 0 && (!in_message_ || rest_ != 0) &&
           reader_.known_tail() == own_.tail.load(std::memory_order_relaxed) && finished() == 0 && !waits_for_ack_ &&
           !agreed_ && !broken();
  }
  /// Whether find would find something.
  [[nodiscard]] bool waiting() noexcept {
    std::size_t fill = 0;
    return parse(fill);
  }
  /// The first `bytes` of the last piece found have been read. False: it had not so many.
  bool consume(std::size_t bytes) noexcept {
    if (!in_message_ || bytes > std::min<std::uint64_t>(rest_, reader_.fill())) return false;
    reader_.consume(bytes);
    rest_ -= bytes;
    if (rest_ == 0) in_message_ = false;
    const bool ends_overflow = reader_.overflows() && reader_.fill() == 0;
    if (waits_for_ack_ || ends_overflow || reader_.capacity() <= kTiny || reader_.owed() >= reader_.capacity() / 4) {
      return_credit();
    }
    return true;
  }
  /// Tells the peer what was read.
  void return_credit() noexcept;
  /// The position up to which was read, for the peer to find beside this side's next tail.
  [[nodiscard]] std::uint64_t piggyback_credit() noexcept { return reader_.piggyback_credit(); }

  /// Changes the section's size to so many lines, once the peer agrees. Not while another change is outstanding.
  void grant(std::uint32_t lines) noexcept;
  /// Whether the peer has agreed to the outstanding change since this was last asked.
  [[nodiscard]] bool take_agreement() noexcept {
    if (!agreed_) return false;
    agreed_ = false;
    return true;
  }
  /// Looks at the peer's words again.
  void look() noexcept;

  /// Whether the peer has said that nothing follows. To be asked before the last look.
  [[nodiscard]] std::uint64_t finished() const noexcept {
    return own_.finished.load(std::memory_order_acquire);  // MAILBOX-FINISHED
  }
  /// How a peer ended that has finished, once all that came was read: an errno value, 0 if in order.
  [[nodiscard]] int ending(std::uint64_t finished) const noexcept {
    if (finished - 1 != reader_.head()) return EPROTO;
    return in_message_ ? ECONNRESET : 0;
  }

  /// Whether the peer has granted or sent anything on this connection.
  [[nodiscard]] bool has_begun() const noexcept {
    // MAILBOX-GRANT acquire, MAILBOX-TAIL acquire: early data that the peer attached before are visible.
    return own_.grant.load(std::memory_order_acquire) != 0 || own_.tail.load(std::memory_order_acquire) != 0;
  }
  /// Whether nothing of the section was found yet.
  [[nodiscard]] bool is_untouched() const noexcept {
    return reader_.head() == 0 && reader_.fill() == 0 && !in_message_;
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return reader_.capacity(); }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return outstanding_.epoch; }
  [[nodiscard]] bool broken() const noexcept { return reader_.broken(); }

 private:
  /// Sections up to this size return every credit at once: a sender fills them with a few messages.
  static constexpr std::size_t kTiny = 1024;

  /// True: a message is under way, and there is a byte of it, or it has none. `fill`: bytes that have come, with those
  /// behind it.
  [[nodiscard]] bool parse(std::size_t& fill) noexcept {
    if (!in_message_ && !begin()) return false;
    fill = reader_.fill();
    if (rest_ == 0 || fill != 0) [[likely]]
      return true;
    look();
    fill = reader_.fill();
    return fill != 0;
  }
  /// Reads the length of a message.
  [[nodiscard]] bool begin() noexcept {
    const std::size_t padding = (0 - reader_.head()) % layout::kMailboxAlign;
    const std::size_t need = padding + sizeof length_;
    if (reader_.fill() < need) {
      look();
      if (reader_.fill() < need) return false;
    }
    if (!read_length(padding)) {
      reader_.declare_broken();
      return false;
    }
    reader_.consume(need);
    rest_ = length_;
    in_message_ = true;
    return true;
  }
  /// Beside the tail or in the section. False: it is nonsense.
  [[nodiscard]] bool read_length(std::size_t padding) noexcept {
    length_ = inlined_word_ - layout::mailbox_inlined(reader_.head() + padding, 0);
    inlined_ = length_ <= layout::kMailboxInlined;
    return inlined_ ? reader_.fill() >= padding + sizeof length_ + length_ : read_length_in_section(padding);
  }
  [[nodiscard]] bool read_length_in_section(std::size_t padding) noexcept {
    if (length_ == layout::kMailboxRestart) [[unlikely]]
      reader_.restart();
    length_ = reader_.word(padding);
    return length_ <= layout::kMailboxLongest;
  }
  void take_ack() noexcept;
  void follow(std::uint64_t overflow) noexcept;

  PeersWords words_;
  const layout::MailboxPage& own_;
  std::byte* section_;
  SectionReader reader_;
  const std::size_t section_bytes_;
  const std::size_t most_overflow_;
  std::uint32_t most_lines_;
  std::uint64_t inlined_word_ = 0;  ///< the peer's, as of the last look
  std::uint64_t overflow_ = 0;      ///< the peer's word, as last followed
  Grant outstanding_;               ///< the last grant made
  bool waits_for_ack_ = false;
  bool agreed_ = false;
  bool in_message_ = false;  ///< its length was read, and not all of it consumed
  bool inlined_ = false;     ///< that message
  std::uint64_t length_ = 0;
  std::uint64_t rest_ = 0;
};

}  // namespace wherry::mailbox
