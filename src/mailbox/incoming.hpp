// SPDX-License-Identifier: Apache-2.0
// The receiving end of a peer's section in this side's mailbox: finds messages in it, returns credit, and grants
// changes of its size.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <algorithm>
#include <cerrno>

#include <wherry/mailbox.hpp>

#include "mailbox/section.hpp"
#include "mailbox/words.hpp"

namespace wherry::mailbox {

class Incoming {
 public:
  /// @param overflow  bytes of the overflow behind a section, as in this side's greeting
  /// @param early  bytes for early data, as in this side's greeting
  Incoming(fabric::Connection& connection, std::size_t overflow, std::size_t early);

  /// Size of the largest section, in lines: the memory behind the words, less the overflow.
  [[nodiscard]] std::uint32_t most_lines() const noexcept { return most_lines_; }

  /// Finds the next piece, of the current message or of the next one. False: none has arrived.
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
  /// Whether arrived bytes are not consumed yet, as last seen.
  [[nodiscard]] bool has_known() const noexcept { return reader_.fill() != 0; }
  /// Whether nothing is to be found and the peer has stored nothing since the last look. Most polls end here, and read
  /// two lines only. An empty message whose length was read is still to be found.
  [[nodiscard]] bool is_silent() const noexcept {
    return reader_.fill() == 0 && (!in_message_ || rest_ != 0) &&
           reader_.known_tail() == own_.tail.load(std::memory_order_relaxed) && finished() == 0 && !waits_for_ack_ &&
           !agreed_ && !broken();
  }
  /// The peer's `tail` word, and its value as of the last look.
  [[nodiscard]] const layout::Word& tail() const noexcept { return own_.tail; }
  [[nodiscard]] std::uint64_t known_tail() const noexcept { return reader_.known_tail(); }
  /// Whether find() would return true.
  [[nodiscard]] bool waiting() noexcept {
    std::size_t fill = 0;
    return parse(fill);
  }
  /// Consumes the first `bytes` of the last piece found. False: the piece is shorter.
  bool consume(std::size_t bytes) noexcept {
    if (!in_message_ || bytes > std::min<std::uint64_t>(rest_, reader_.fill())) return false;
    reader_.consume(bytes);
    rest_ -= bytes;
    if (rest_ == 0) in_message_ = false;
    const bool ends_overflow = reader_.overflows() && reader_.fill() == 0;
    if (waits_for_ack_ || ends_overflow || reader_.should_return_credit()) return_credit();
    return true;
  }
  /// Stores the peer's `head`, if credit is owed.
  void return_credit() noexcept;
  /// Returns the head to store in the peer's `seen` word, along with this side's next tail.
  [[nodiscard]] std::uint64_t piggyback_credit() noexcept { return reader_.piggyback_credit(); }

  /// Grants the peer a section of `lines`. It takes effect when the peer agrees. Not while another grant is
  /// outstanding.
  void grant(std::uint32_t lines) noexcept;
  /// Whether the peer has agreed to the grant since the last call.
  [[nodiscard]] bool take_agreement() noexcept {
    if (!agreed_) return false;
    agreed_ = false;
    return true;
  }
  /// Reads the peer's words again.
  void look() noexcept;

  /// The peer's `finished` word: 0, or 1 + its final tail. Read it before the last look().
  [[nodiscard]] std::uint64_t finished() const noexcept {
    return own_.finished.load(std::memory_order_acquire);  // MAILBOX-FINISHED
  }
  /// How a finished peer ended, asked after all its bytes were read. Returns an errno value; 0: in order.
  [[nodiscard]] int ending(std::uint64_t finished) const noexcept {
    if (finished - 1 != reader_.head()) return EPROTO;
    return in_message_ ? ECONNRESET : 0;
  }

  /// Whether the peer has granted or sent anything on this connection.
  [[nodiscard]] bool has_begun() const noexcept {
    // MAILBOX-GRANT acquire, MAILBOX-TAIL acquire: early data that the peer attached before are visible.
    return own_.grant.load(std::memory_order_acquire) != 0 || own_.tail.load(std::memory_order_acquire) != 0;
  }
  /// Whether nothing was found in the section yet.
  [[nodiscard]] bool is_untouched() const noexcept {
    return reader_.head() == 0 && reader_.fill() == 0 && !in_message_;
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return reader_.capacity(); }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return outstanding_.epoch; }
  [[nodiscard]] bool broken() const noexcept { return reader_.broken(); }

 private:
  /// True if find() has a piece: a byte of the current message has arrived, or the message is empty. `fill`: arrived
  /// bytes of it and of what follows it.
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
  /// Reads the length beside the tail or in the section. False: it is invalid.
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
  void take_ack(std::uint64_t& overflow) noexcept;
  void follow(std::uint64_t overflow) noexcept;

  PeersWords words_;
  const layout::MailboxPage& own_;
  std::byte* section_;
  SectionReader reader_;
  const std::size_t section_bytes_;
  const std::size_t most_overflow_;
  std::uint32_t most_lines_;
  std::uint64_t inlined_word_ = 0;  ///< the peer's `inlined` word, as of the last look
  std::uint64_t overflow_ = 0;      ///< the peer's `overflow` word, as last followed
  Grant outstanding_;               ///< the last grant made
  bool waits_for_ack_ = false;
  bool agreed_ = false;
  bool in_message_ = false;  ///< the length of a message was read, and it is not consumed completely
  bool inlined_ = false;     ///< the current message lies beside the tail
  std::uint64_t length_ = 0;
  std::uint64_t rest_ = 0;
};

}  // namespace wherry::mailbox
