// SPDX-License-Identifier: Apache-2.0
// How one side of a pair reaches the words and the section in the other's segment, on either form of fabric. May
// include: base, layout, fabric.
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

/// A grant as it stands in its word.
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
  /// @param early  bytes of the peer's segment that are for its early data
  PeersWords(fabric::Connection& connection, std::size_t early)
      : connection_(&connection),
        remote_(reinterpret_cast<layout::MailboxPage*>(connection.map())),
        section_bytes_(connection.remote_bytes() - layout::kMailboxWordsBytes - early) {}

  [[nodiscard]] bool mapped() const { return remote_ != nullptr; }
  /// The peer's section where it is mapped.
  [[nodiscard]] std::byte* section() const {
    return reinterpret_cast<std::byte*>(remote_) + layout::kMailboxWordsBytes;
  }
  [[nodiscard]] std::size_t section_bytes() const { return section_bytes_; }

  /// Stores a word with release order and rings. False: the fabric knows that the peer is dead. Inlined into each
  /// caller: a call costs a short message more than the store.
  [[gnu::always_inline]] bool store(layout::Word layout::MailboxPage::* word, std::size_t offset, std::uint64_t value,
                                    fabric::Bell bell) {
    if (remote_ == nullptr) return connection_->signal(offset, value, bell);
    // MAILBOX-TAIL, MAILBOX-ACK, MAILBOX-HEAD, MAILBOX-GRANT, MAILBOX-FINISHED release: see layout/mailbox_page.hpp.
    (remote_->*word).store(value, std::memory_order_release);
    connection_->announce(bell);
    return true;
  }
  /// Where the page is mapped: room for a short message, of kMailboxInlined bytes.
  [[nodiscard]] std::byte* inlined_bytes() const { return remote_->inlined_bytes; }
  /// Where the page is mapped: what layout::mailbox_inlined says of the next message, before the tail that publishes
  /// it.
  void store_inlined(std::uint64_t word) { remote_->inlined.store(word, std::memory_order_relaxed); }
  /// Where the page is mapped: what was read may be overwritten from now on.
  void store_seen(std::uint64_t position) {
    // MAILBOX-SEEN release: pairs with SectionWriter::refresh.
    remote_->seen.store(position, std::memory_order_release);
  }
  /// Where the page is mapped: where the bytes of the next tail lie (layout/mailbox_page.hpp).
  void store_overflow(std::uint64_t word) {
    // MAILBOX-OVERFLOW release: pairs with the acquire in Incoming::look.
    remote_->overflow.store(word, std::memory_order_release);
  }
  /// On put fabrics: bytes of this side's memory to the same place of the peer's section, which the second part begins,
  /// and the tail behind them. False: dead.
  bool put(std::size_t place, const Regions& bytes, std::uint64_t tail) {
    return connection_->put_and_signal(layout::kMailboxWordsBytes + place, bytes.first, layout::kMailboxWordsBytes,
                                       bytes.second, offsetof(layout::MailboxPage, tail), tail, fabric::Bell::data);
  }
  /// On put fabrics: as much memory of this side's to put from as the peer's section has. Throws std::bad_alloc.
  std::shared_ptr<std::byte[]> staging() { return connection_->buffer(section_bytes_); }

 private:
  fabric::Connection* connection_;
  layout::MailboxPage* remote_;  ///< null on put fabrics
  std::size_t section_bytes_;
};

#define WHERRY_MAILBOX_WORD(name) &layout::MailboxPage::name, offsetof(layout::MailboxPage, name)

}  // namespace wherry::mailbox
