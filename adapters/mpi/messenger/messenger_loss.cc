// SPDX-License-Identifier: Apache-2.0
// A peer is gone: what it was to do or to get fails, and nothing else.
#include <rdma/fi_errno.h>

#include <array>

#include "messenger.hpp"

namespace wherry::mpi {

bool Messenger::take_losses() noexcept {
  std::array<Mailbox::Loss, 16> losses;
  const std::size_t count = mailbox_.losses(losses);
  for (std::size_t i = 0; i < count; ++i) {
    mailbox_.forget(losses[i].peer);
    lose(losses[i].peer, losses[i].error);
  }
  return count > 0;
}

// `error` is 0 if the peer closed in order.
void Messenger::lose(Mailbox::Peer peer, int error) {
  if (peer < inflows_.size() && inflows_[peer] != nullptr) {
    const std::unique_ptr<Inflow> inflow = std::move(inflows_[peer]);
    if (inflow->receive != nullptr && !inflow->receive->streams) finish(*inflow->receive, FI_ECONNRESET);
    if (inflow->unexpected != nullptr) {
      inflow->unexpected->inflow = nullptr;
      inflow->unexpected->error = FI_ECONNRESET;
    }
  }
  for (auto& [name, link] : links_) {
    if (link->peer != peer) continue;
    close_lane(*link);
    link->peer = Mailbox::kNoPeer;
    link->error = FI_ECONNRESET;
    lose_sends(*link, FI_ECONNRESET);
    lose_receives(*link, error);
  }
}

void Messenger::lose_sends(Link& link, int error) {
  if (link.is_linked()) link.unlink();
  while (Send* send = link.queue.pop_front()) complete(*send, error);
  link.queued = 0;
  sends_.for_each_taken([&](Send& send) {
    if (send.to == &link) complete(send, error);
  });
}

// Receives that only this peer could satisfy fail if it died; of one that ended in order nothing more was to come.
void Messenger::lose_receives(Link& link, int error) {
  pulls_.for_each([&](Receive& receive) {
    if (receive.from != &link) return;
    receive.unlink();
    finish(receive, FI_ECONNRESET);
  });
  matching_.for_each_unexpected([&](Unexpected& message) {
    if (message.from == &link && message.announced) message.error = FI_ECONNRESET;
  });
  receives_.for_each_taken([&](Receive& receive) {
    if (receive.from != &link || !receive.streams) return;
    if (receive.is_linked()) receive.unlink();
    finish(receive, FI_ECONNRESET);
  });
  if (error == 0 || link.address == kAnySource) return;
  matching_.for_each_posted([&](Receive& receive) {
    if (receive.source != link.address || receive.several) return;
    receive.unlink();
    receive.from = &link;
    finish(receive, FI_ECONNRESET);
  });
}

}  // namespace wherry::mpi
