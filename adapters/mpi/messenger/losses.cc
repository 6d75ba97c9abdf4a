// SPDX-License-Identifier: Apache-2.0
#include "losses.hpp"

#include <rdma/fi_errno.h>

#include <array>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "initiator.hpp"
#include "link_table.hpp"
#include "message_receiver.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "transfers.hpp"

namespace wherry::mpi {
namespace {

std::string description_of(const Link& link) {
  const std::string name = link.name.text();
  return link.address == kAnySource ? name : name + " (address " + std::to_string(link.address) + " here)";
}

std::string breach_of(int error) {
  return error == FI_ENOBUFS
             ? "it makes this process hold more than one peer may: it was asked to stop but still sends "
               "messages for which no receive is posted, or it takes no answers"
             : "it sent a packet that the protocol does not allow";
}

}  // namespace

bool Losses::take() noexcept {
  std::array<Mailbox::Loss, 16> losses;
  const std::size_t count = mailbox_.losses(losses);
  for (std::size_t i = 0; i < count; ++i) {
    mailbox_.forget(losses[i].peer);
    lose(losses[i].peer, losses[i].error);
  }
  return count > 0;
}

// `error` is 0 if the peer closed in order.
void Losses::lose(Mailbox::Peer peer, int error) {
  const std::unique_ptr<Inflow> inflow = roles_.links.remove_inflow(peer);
  if (inflow != nullptr && inflow->sink != nullptr) inflow->sink->lost(*inflow);
  roles_.links.for_each([&](Link& link) {
    if (link.peer != peer) return;
    roles_.transfers.close_lane(link);
    link.peer = Mailbox::kNoPeer;
    link.error = FI_ECONNRESET;
    roles_.outbox.lose(link, FI_ECONNRESET);
    roles_.offers.lose(link, FI_ECONNRESET);
    roles_.initiator.lose(link, FI_ECONNRESET);
    roles_.transfers.lose(link, FI_ECONNRESET);
    roles_.receiver.lose(link, error);
  });
}

void Losses::on_breach(Inflow& inflow) noexcept {
  const int error = inflow.error;
  Link* const link = inflow.link;
  const Mailbox::Peer peer = inflow.peer;
  if (link != nullptr) {
    log::write(log::Level::error, "closed the connection to " + description_of(*link) + ": " + breach_of(error) +
                                      "; check that process, and that all processes load the same provider");
  }
  mailbox_.forget(peer);
  lose(peer, error);
  if (error == FI_ENOBUFS) roles_.receiver.drop_all_of(*link);
}

}  // namespace wherry::mpi
