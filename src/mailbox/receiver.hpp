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
#include "mailbox/waiter.hpp"

namespace wherry::mailbox {

class Receiver {
 public:
  Receiver(Pairs& pairs, EarlyData& early, Doorbells& bells, SectionAllocator& sections, ProgressEngine& engine,
           Waiter& waiter)
      : pairs_(pairs), early_(early), bells_(bells), sections_(sections), engine_(engine), waiter_(waiter) {}

  // As the functions of Mailbox.
  Result try_peek(Mailbox::Piece& piece) noexcept;
  void consume(const Mailbox::Piece& piece, std::size_t bytes) noexcept;
  Result try_receive(std::span<std::byte> buffer, Mailbox::Peer& from) noexcept;
  Result receive(std::span<std::byte> buffer, Mailbox::Peer& from, const Timeout& timeout) noexcept;

 private:
  [[nodiscard]] static bool is_silent(const Pair& pair) noexcept;
  void consume_early(Pair& pair, std::size_t bytes) noexcept;
  Result find_early(Mailbox::Piece& piece) noexcept;
  bool find_in(Pair& pair, Mailbox::Piece& piece) noexcept;
  [[nodiscard]] Pair* half_copied() const noexcept;
  [[nodiscard]] Result next_piece(Mailbox::Piece& piece) noexcept;
  bool wait_for_rest(Pair& pair, const fabric::Deadline& deadline) noexcept;

  Pairs& pairs_;
  EarlyData& early_;
  Doorbells& bells_;
  SectionAllocator& sections_;
  ProgressEngine& engine_;
  Waiter& waiter_;
  Mailbox::Peer half_copied_from_ = Mailbox::kNoPeer;  ///< the peer whose message try_receive has begun
  unsigned idle_looks_ = 0;                            ///< calls of try_peek since a piece was found
};

}  // namespace wherry::mailbox
