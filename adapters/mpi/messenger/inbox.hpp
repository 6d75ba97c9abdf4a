// SPDX-License-Identifier: Apache-2.0
// Receives packets from the mailbox: assembles and checks their heads, then calls the role that handles the operation.
// A peer that violates the protocol is disconnected, and its pending requests fail.
#pragma once

#include <cstddef>
#include <span>

#include <wherry/mailbox.hpp>

#include "link.hpp"
#include "link_table.hpp"
#include "losses.hpp"
#include "message_receiver.hpp"
#include "roles.hpp"

namespace wherry::mpi {

class Inbox {
 public:
  Inbox(Mailbox& mailbox, const Roles& roles, Losses& losses)
      : mailbox_(mailbox), links_(roles.links), receiver_(roles.receiver), roles_(roles), losses_(losses) {}

  /// Handles up to 64 pieces that have arrived. Returns true if there was one.
  bool take() noexcept;

 private:
  bool take_short(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  bool take_answer(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  void take(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  void feed(Inflow& inflow, std::span<const std::byte> bytes);
  void read_head(Inflow& inflow);
  void begin(Inflow& inflow);
  static void end(Inflow& inflow);

  Mailbox& mailbox_;
  LinkTable& links_;
  MessageReceiver& receiver_;
  const Roles roles_;
  Losses& losses_;
};

}  // namespace wherry::mpi
