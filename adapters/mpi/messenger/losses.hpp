// SPDX-License-Identifier: Apache-2.0
// A peer is gone, or has broken the rules: what it was to do or to get fails, and nothing else.
#pragma once

#include <wherry/mailbox.hpp>

#include "roles.hpp"

namespace wherry::mpi {

struct Inflow;

class Losses {
 public:
  Losses(Mailbox& mailbox, const Roles& roles) : mailbox_(mailbox), roles_(roles) {}

  /// What the mailbox has noticed. True if there was any.
  bool take() noexcept;
  /// The peer of `inflow`, which ends with this, has broken the rules: Inflow::error.
  void on_breach(Inflow& inflow) noexcept;

 private:
  void lose(Mailbox::Peer peer, int error);

  Mailbox& mailbox_;
  const Roles roles_;
};

}  // namespace wherry::mpi
