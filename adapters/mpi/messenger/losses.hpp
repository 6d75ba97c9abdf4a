// SPDX-License-Identifier: Apache-2.0
// Handles peers that are gone or have violated the protocol: their pending requests fail, and nothing else.
#pragma once

#include <wherry/mailbox.hpp>

#include "roles.hpp"

namespace wherry::mpi {

struct Inflow;

class Losses {
 public:
  Losses(Mailbox& mailbox, const Roles& roles) : mailbox_(mailbox), roles_(roles) {}

  /// Handles the losses that the mailbox has noticed. Returns true if there was one.
  bool take() noexcept;
  /// Disconnects the peer of `inflow`, which has violated the protocol (Inflow::error). Destroys `inflow`.
  void on_breach(Inflow& inflow) noexcept;

 private:
  void lose(Mailbox::Peer peer, int error);

  Mailbox& mailbox_;
  const Roles roles_;
};

}  // namespace wherry::mpi
