// SPDX-License-Identifier: Apache-2.0
// Access of one side of a pair to the words and the section in the other's segment, on load/store and put fabrics.
//
// May include: base, layout, fabric.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include <wherry/result.hpp>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"

namespace wherry::mailbox {

/// This side's words, which the peer writes.
inline const layout::MailboxPage& own_words(const fabric::Connection& connection) {
  return *reinterpret_cast<const layout::MailboxPage*>(connection.segment().data());
}

/// The contents of a `grant` word.
struct Grant {
  std::uint32_t epoch = 0;  ///< 0: none yet
  std::uint32_t lines = 0;

  static Grant from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
  }
  [[nodiscard]] std::uint64_t word() const { return std::uint64_t{epoch} << 32 | lines; }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{lines} * layout::kMailboxLine; }
};

/// The peer's words.
class PeersWords {
 public:
  /// @param early  bytes of the peer's segment reserved for its early data
  PeersWords(fabric::Connection& connection, std::size_t early)
      : connection_(&connection),
        remote_(reinterpret_cast<layout::MailboxPage*>(connection.map())),
        section_bytes_(connection.remote_bytes() - layout::kMailboxWordsBytes - early) {}

  [[nodiscard]] bool mapped() const { return remote_ != nullptr; }
  /// The section in the peer's segment. Only if mapped().
  [[nodiscard]] std::byte* section() const {
    return reinterpret_cast<std::byte*>(remote_) + layout::kMailboxWordsBytes;
  }
  [[nodiscard]] std::size_t section_bytes() const { return section_bytes_; }

  /// Stores a word with release order and notifies the peer. False: the fabric knows that the peer is dead. Forced
  /// inline: for a short message a call costs more than the store.
  [[gnu::always_inline]] bool store(layout::Word layout::MailboxPage::* word, std::size_t offset, std::uint64_t value,
                                    fabric::Bell bell) {
    if (remote_ == nullptr) return connection_->signal(offset, value, bell);
    // MAILBOX-TAIL, MAILBOX-ACK, MAILBOX-HEAD, MAILBOX-GRANT, MAILBOX-FINISHED release: see layout/mailbox_page.hpp.
    (remote_->*word).store(value, std::memory_order_release);
    connection_->announce(bell);
    return true;
  }
  /// Only if mapped(): the kMailboxInlined bytes for an inlined message.
  [[nodiscard]] std::byte* inlined_bytes() const { return remote_->inlined_bytes; }
  /// Only if mapped(): stores the word of an inlined message (layout::mailbox_inlined), before the tail that publishes
  /// it.
  void store_inlined(std::uint64_t word) { remote_->inlined.store(word, std::memory_order_relaxed); }
  /// Only if mapped(): returns credit up to `position`, without ringing a bell.
  void store_seen(std::uint64_t position) {
    // MAILBOX-SEEN release: pairs with SectionWriter::refresh.
    remote_->seen.store(position, std::memory_order_release);
  }
  /// Only if mapped(): stores where the bytes of the next tail lie (layout/mailbox_page.hpp).
  void store_overflow(std::uint64_t word) {
    // MAILBOX-OVERFLOW release: pairs with the acquire in Incoming::look.
    remote_->overflow.store(word, std::memory_order_release);
  }
  /// Put fabrics only: puts bytes of this side's memory at offset `place` of the peer's section, the second region at
  /// its start, and then the tail. False: the peer is dead.
  bool put(std::size_t place, const Regions& bytes, std::uint64_t tail) {
    return connection_->put_and_signal(layout::kMailboxWordsBytes + place, bytes.first, layout::kMailboxWordsBytes,
                                       bytes.second, offsetof(layout::MailboxPage, tail), tail, fabric::Bell::data);
  }
  /// Put fabrics only: memory to put from, as large as the peer's section. Throws std::bad_alloc.
  std::shared_ptr<std::byte[]> staging() { return connection_->buffer(section_bytes_); }

 private:
  fabric::Connection* connection_;
  layout::MailboxPage* remote_;  ///< null on put fabrics
  std::size_t section_bytes_;
};

#define WHERRY_MAILBOX_WORD(name) &layout::MailboxPage::name, offsetof(layout::MailboxPage, name)

}  // namespace wherry::mailbox
