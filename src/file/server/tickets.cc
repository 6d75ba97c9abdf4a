// SPDX-License-Identifier: Apache-2.0
#include "file/server/tickets.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "file/server/server_handles.hpp"

namespace wherry::file {

void TicketMaker::end() noexcept {
  if (grant_ == nullptr) return;
  grant_->end();
  while (grant_->is_in_use()) std::this_thread::yield();
  grant_.reset();
  tickets_->drop_void();
}

Tickets::~Tickets() { budget_.give_back(unused_.size()); }

int Tickets::make(Offer offer, layout::FileTicket& ticket) {
  // getrandom returns 16 bytes completely.
  if (::getrandom(ticket.random, sizeof ticket.random, 0) < 0) return errno;
  const std::lock_guard lock(mutex_);
  drop_void_locked();
  if (unused_.size() >= kMost || !budget_.take()) return ENFILE;
  const auto until = Clock::now() + std::chrono::milliseconds(layout::kFileTicketMs);
  unused_.push_back({.ticket = ticket, .until = until, .offer = std::move(offer)});
  return 0;
}

std::optional<Tickets::Offer> Tickets::take(const layout::FileTicket& ticket) {
  const std::lock_guard lock(mutex_);
  drop_void_locked();
  const auto found = std::ranges::find(unused_, ticket, &Unused::ticket);
  if (found == unused_.end()) return {};
  std::optional<Offer> offer = std::move(found->offer);
  unused_.erase(found);
  budget_.give_back(1);
  return offer;
}

void Tickets::drop_void() {
  const std::lock_guard lock(mutex_);
  drop_void_locked();
}

void Tickets::drop_void_locked() {
  const auto is_void = [now = Clock::now()](const Unused& one) {
    return one.until <= now || one.offer.grant->has_ended();
  };
  budget_.give_back(std::erase_if(unused_, is_void));
}

}  // namespace wherry::file
