// SPDX-License-Identifier: Apache-2.0
// Receives messages from the sections of all peers, in turn.
//
// May include: base, arch, layout, fabric, stream.
#pragma once

#include <cstddef>
#include <span>

#include <wherry/mailbox.hpp>

#include "mailbox/doorbells.hpp"
#include "mailbox/early_data.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/progress_engine.hpp"
#include "mailbox/section_allocator.hpp"
#include "mailbox/tail_watch.hpp"
#include "mailbox/waiter.hpp"
#include "mailbox/write_interest.hpp"

namespace wherry::mailbox {

class Receiver {
 public:
  Receiver(Pairs& pairs, EarlyData& early, WriteInterest& write_interest, Doorbells& bells, SectionAllocator& sections,
           ProgressEngine& engine, Waiter& waiter)
      : pairs_(pairs),
        early_(early),
        write_interest_(write_interest),
        bells_(bells),
        sections_(sections),
        engine_(engine),
        waiter_(waiter) {}

  // As the functions of Mailbox.
  Result try_peek(Mailbox::Piece& piece) noexcept;
  /// As Mailbox::has_news.
  [[nodiscard]] bool has_news() noexcept {
    if (!is_unchanged()) return true;
    engine_.poll_kernel_next();
    return false;
  }
  void consume(const Mailbox::Piece& piece, std::size_t bytes) noexcept;
  Result try_receive(std::span<std::byte> buffer, Mailbox::Peer& from) noexcept;
  Result receive(std::span<std::byte> buffer, Mailbox::Peer& from, const Timeout& timeout) noexcept;

 private:
  /// Whether no active peer has sent anything since a look that found nothing, and nothing else needs a whole look.
  [[nodiscard]] bool is_unchanged() const noexcept {
    return tails_.is_valid(bells_.version()) && !tails_.has_moved() && !write_interest_.has_waiting() &&
           !early_.has_unread();
  }
  Result find_in_active(Mailbox::Piece& piece) noexcept;
  Result find_nothing() noexcept;
  [[nodiscard]] static bool is_silent(const Pair& pair) noexcept;
  void consume_early(Pair& pair, std::size_t bytes) noexcept;
  Result find_early(Mailbox::Piece& piece) noexcept;
  bool find_in(Pair& pair, Mailbox::Piece& piece) noexcept;
  [[nodiscard]] Pair* half_copied() const noexcept;
  [[nodiscard]] Result next_piece(Mailbox::Piece& piece) noexcept;
  bool wait_for_rest(Pair& pair, const fabric::Deadline& deadline) noexcept;

  Pairs& pairs_;
  EarlyData& early_;
  WriteInterest& write_interest_;
  Doorbells& bells_;
  SectionAllocator& sections_;
  ProgressEngine& engine_;
  Waiter& waiter_;
  Mailbox::Peer half_copied_from_ = Mailbox::kNoPeer;  ///< the peer whose message try_receive has begun
  TailWatch tails_;
  unsigned tails_looks_ = 0;  ///< looks at the tails alone since the last whole look
  unsigned idle_looks_ = 0;   ///< calls of try_peek since a piece was found
};

}  // namespace wherry::mailbox
