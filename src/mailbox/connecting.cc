// SPDX-License-Identifier: Apache-2.0
// How pairs of mailboxes come about, and end.
//
// Two mailboxes may connect to each other at the same moment; one of the two connections must give way before anything
// is sent on it. The one that the mailbox with the smaller number makes stays. The other's connector is dropped when it
// is let in, before it was granted a section: so only early data were sent on it, and its maker waits for the one that
// stays.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "fabric/retrying_connect.hpp"
#include "mailbox/greeting.hpp"
#include "mailbox/impl.hpp"

namespace wherry {
namespace {

using layout::MailboxGreeting;
using mailbox::greeting_of;

constexpr std::size_t kPage = 4096;
/// Before the second attempt to reach a peer that dropped the first, or to serve a port while descriptors are short;
/// then longer, each time by as much, up to a hundred times that.
constexpr std::chrono::milliseconds kRetry{1};
/// How long a listener whose queue is full is tried: many mailboxes may connect to one at the same moment.
constexpr std::chrono::seconds kQueueTimeout{30};
constexpr unsigned kLongestRetry = 100;
/// A peer that lets this side in and drops it again, so often, is none: after half a minute.
constexpr unsigned kMostAttempts = 350;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void log_dropped(const std::exception& error) noexcept {
  try {
    if (log::enabled(log::Level::info)) {
      log::write(log::Level::info, std::string("dropped a connector: ") + error.what());
    }
  } catch (...) {
  }
}

}  // namespace

fabric::Fabric& Mailbox::Impl::fabric_of(const Address& address) {
  fabric::Fabric& fabric = fabric::find(address);
  if (fabric_ != nullptr && fabric_ != &fabric) {
    throw Error(EINVAL, "meet peers at", address.to_string(),
                "the others were met on fabric " + std::string(fabric_->name()) + "; use one mailbox for each fabric");
  }
  return fabric;
}

void Mailbox::Impl::listen(const Address& address) {
  if (listener_ != nullptr) {
    throw Error(EINVAL, "listen", address.to_string(),
                "already listening on " + listener_->local().to_string() + "; use another mailbox");
  }
  fabric::Fabric& fabric = fabric_of(address);
  auto listener = fabric.listen(address);
  bells_.watch(listener->descriptor(), port_);
  listener_ = std::move(listener);
  fabric_ = &fabric;
  fabric_name_ = address.fabric;
}

const Address& Mailbox::Impl::local() const noexcept { return listener_ == nullptr ? nowhere_ : listener_->local(); }

fabric::Offer Mailbox::Impl::offer() const {
  MailboxGreeting greeting{.magic = layout::kMailboxMagic,
                           .version = layout::kMailboxVersion,
                           .mailbox = number_,
                           .header = static_cast<std::uint32_t>(quiet_header_ * layout::kMailboxLine),
                           .listens = listener_ != nullptr,
                           .node = local().node.value_or(0),
                           .port = local().port.value_or(0),
                           .reserved0 = {},
                           .overflow = static_cast<std::uint32_t>(overflow_),
                           .early = static_cast<std::uint32_t>(early_bytes()),
                           .claims = fabric_->keeps_segments(),
                           .reserved = {}};
  const std::size_t granted = (std::size_t{std::max(budget_, header_)} + lane_) * layout::kMailboxLine;
  const std::size_t section = std::max(granted, overflow_);
  // Compact: a peer that says little takes one page on each side.
  const std::size_t before = layout::segment_place(true) + layout::kMailboxWordsBytes;
  fabric::Offer offer{.segment_bytes = whole_pages(before + section) + early_bytes(),
                      .compact = true,
                      .departed = fabric_->keeps_segments(),
                      .objection = mailbox::objection};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

/// A number, and room for whatever has to be noted down about it later.
Mailbox::Impl::Pair& Mailbox::Impl::make_pair() {
  if (living_ >= most_peers_) {
    throw Error(ENOSPC, "meet another peer", local().to_string(),
                "this mailbox has " + std::to_string(living_) + " already; raise MailboxOptions::most_peers");
  }
  const auto free = std::find(pairs_.begin(), pairs_.end(), nullptr);
  const auto place = static_cast<std::size_t>(free - pairs_.begin());
  const std::size_t count = std::max(pairs_.size(), place + 1);
  losses_.reserve(count);
  wanting_.reserve(count);
  early_.reserve(count);
  writable_.reserve(count);
  ledger_.reserve(count);
  talkers_.reserve(count);
  auto pair = std::make_unique<Pair>(static_cast<Peer>(place));
  pairs_.resize(count);
  pairs_[place] = std::move(pair);
  ++living_;
  return *pairs_[place];
}

Mailbox::Impl::Pair* Mailbox::Impl::pair_at(const Address& address) const noexcept {
  for (const auto& pair : pairs_) {
    if (pair == nullptr || pair->state == State::lost || pair->gone || !pair->address) continue;
    if (pair->address->node == address.node && pair->address->port == address.port) return pair.get();
  }
  return nullptr;
}

Mailbox::Peer Mailbox::Impl::connect(const Address& address, const Timeout& wait) {
  const fabric::Deadline listener_by = stream::connect_deadline(wait);
  fabric::Fabric& fabric = fabric_of(address);
  Address exact = address;
  if (!exact.node) exact.node = own_node();
  if (const Pair* known = pair_at(exact)) return known->number;
  Pair& pair = make_pair();
  pair.address = exact;
  fabric_ = &fabric;
  fabric_name_ = address.fabric;
  try {
    start(pair, listener_by);
  } catch (...) {
    forget(pair.number);
    throw;
  }
  return pair.number;
}

/// This side's attempt or connection gives way, on which the peer has granted nothing. False: the pair is lost.
bool Mailbox::Impl::give_up(Pair& pair) noexcept {
  try {
    pair.early.withdraw();
  } catch (const std::bad_alloc&) {
    (void)lose(pair, ENOMEM);
    return false;
  }
  drop_attempt(pair);
  if (pair.is_open()) end_connection(pair);
  return true;
}

/// Begins an attempt, which waits for a listener until then. Throws Error.
void Mailbox::Impl::start(Pair& pair, const fabric::Deadline& listener_by) {
  pair.initiated = true;
  ++pair.attempts;
  const fabric::RetryUntil until{.nobody_listens = listener_by,
                                 .queue_full = stream::SteadyClock::now() + kQueueTimeout};
  try {
    pair.attempt = fabric::start_connect(*fabric_, *pair.address, offer(), until);
    bells_.watch(pair.attempt->descriptor(), pair.attempt_source);
    pair.state = State::connecting;
    attach_early(pair, pair.attempt->segment());
  } catch (...) {
    pair.attempt.reset();
    throw;
  }
}

void Mailbox::Impl::retry_later(Pair& pair) noexcept {
  pair.state = State::waiting;
  ++waiting_;
  const Time next = stream::SteadyClock::now() + kRetry * std::min(pair.attempts, kLongestRetry);
  next_retry_ = waiting_ > 1 ? std::min(next_retry_, next) : next;
}

void Mailbox::Impl::retry_all(Time now) noexcept {
  if ((waiting_ == 0 && !port_rests_) || now < next_retry_) return;
  if (waiting_ != 0) next_retry_ = Time::max();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Pair* pair = pairs_[i].get();
    if (pair == nullptr || pair->state != State::waiting) continue;
    --waiting_;
    pair->state = State::connecting;
    try {
      if (pair->attempts >= kMostAttempts) throw Error(ECONNREFUSED, "connect", "", "it was dropped too often");
      start(*pair, now);  // it has listened: if it does no longer, it is lost
    } catch (const Error& error) {
      (void)lose(*pair, error.code().value());
    } catch (...) {
      (void)lose(*pair, ENOMEM);
    }
  }
  if (!port_rests_) return;
  rest_port(false);
  accept_all();
}

void Mailbox::Impl::drop_attempt(Pair& pair) noexcept {
  if (pair.attempt == nullptr) return;
  if (!origin_.inherited()) bells_.unwatch(pair.attempt->descriptor());
  pair.attempt.reset();
}

void Mailbox::Impl::finish_attempt(Pair& pair) noexcept {
  if (pair.attempt == nullptr) return;
  try {
    auto connection = pair.attempt->try_finish();
    if (connection == nullptr) return;
    drop_attempt(pair);
    open(pair, std::move(connection));
  } catch (const Error& error) {
    // The other side may have dropped this attempt for its own; else the next one tells.
    if (error.code().value() != ECONNRESET) return (void)lose(pair, error.code().value());
    if (give_up(pair)) retry_later(pair);
  } catch (...) {
    (void)lose(pair, ENOMEM);
  }
}

void Mailbox::Impl::accept_all() noexcept {
  try {
    while (auto connection = listener_->try_accept(offer())) {
      try {
        accept(std::move(connection));
      } catch (const Error& error) {
        log_dropped(error);
      }
    }
  } catch (const std::exception& error) {
    log_dropped(error);
    rest_port(true);
  }
}

/// The port cannot be served now; until it is tried again it must not keep this side awake.
void Mailbox::Impl::rest_port(bool rests) noexcept {
  if (port_rests_ == rests) return;
  port_rests_ = rests;
  next_retry_ = stream::SteadyClock::now() + kRetry;
  if (rests) return bells_.unwatch(listener_->descriptor());
  try {
    bells_.watch(listener_->descriptor(), port_);
  } catch (const std::exception& error) {
    log_dropped(error);
    port_rests_ = true;
  }
}

/// The pair that this side is making to the same mailbox: its attempts go to that address. Once it was granted a
/// section it is made.
Mailbox::Impl::Pair* Mailbox::Impl::crossing(const Address& address, std::uint64_t number) const noexcept {
  if (number == number_) return nullptr;
  for (const auto& pair : pairs_) {
    if (pair == nullptr || !pair->initiated || pair->state == State::lost || !pair->address) continue;
    if (pair->address->node != address.node || pair->address->port != address.port) continue;
    if (pair->is_open() && (pair->out->capacity() != 0 || pair->mailbox != number)) continue;
    return pair.get();
  }
  return nullptr;
}

void Mailbox::Impl::accept(std::unique_ptr<fabric::Connection> connection) {
  const MailboxGreeting greeting = greeting_of(*connection);
  std::optional<Address> address;
  if (greeting.listens != 0) address = Address{fabric_name_, greeting.node, greeting.port};
  const bool departed = fabric_->keeps_segments() && connection->peer_gone();
  if (departed && !mailbox::left_behind(*connection, greeting.early).messages) return;
  Pair* crossed = address ? crossing(*address, greeting.mailbox) : nullptr;
  if (crossed != nullptr) {
    if (number_ > greeting.mailbox && !departed) return change_over(*crossed, std::move(connection));
    // The connection is dropped, and its messages are the pair's.
    if (const int error = claim_early(*crossed, *connection); error != 0) (void)lose(*crossed, error);
    return show();
  }
  Pair& pair = make_pair();
  pair.address = std::move(address);
  try {
    open(pair, std::move(connection));
  } catch (...) {
    forget(pair.number);
    throw;
  }
}

/// This side's own way to the peer gives way to the peer's. The user knows the pair, and events of the batch at hand
/// may name it: a failure ends it as a loss, and nothing is freed.
void Mailbox::Impl::change_over(Pair& pair, std::unique_ptr<fabric::Connection> connection) noexcept {
  if (!give_up(pair)) return;
  if (pair.state == State::waiting) --waiting_;
  pair.state = State::connecting;
  pair.initiated = false;
  try {
    open(pair, std::move(connection));
  } catch (const Error& error) {
    (void)lose(pair, error.code().value());
  } catch (...) {
    (void)lose(pair, ENOMEM);
  }
}

/// Throws Error, std::bad_alloc: the pair then has no connection.
void Mailbox::Impl::open(Pair& pair, std::unique_ptr<fabric::Connection> connection) {
  const MailboxGreeting greeting = greeting_of(*connection);
  pair.connection = std::move(connection);
  pair.private_memory = pair.connection->private_memory();
  reinterpret_cast<layout::MailboxPage*>(pair.connection->segment().data())->version = layout::kMailboxVersion;
  pair.mailbox = greeting.mailbox;
  pair.peers_header = greeting.header;
  pair.gone = false;
  try {
    pair.out.emplace(*pair.connection, greeting.overflow, greeting.early);
    pair.in.emplace(*pair.connection, overflow_, early_bytes());
    if (greeting.claims != 0) {
      attach_early(pair, pair.connection->segment());
    } else if (pair.early.any()) {
      throw Error(EPROTO, "exchange messages with", pair.connection->peer().address.to_string(),
                  "it does not map what was sent to it already; use the same fabric on both sides");
    } else {
      pair.early.detach();
    }
    bells_.join(pair);
  } catch (...) {
    drop_connection(pair);
    throw;
  }
  pair.state = State::open;
  // Before the first grant, which leads the peer to the section.
  const int error = claim_early(pair, *pair.connection);
  join_layout(pair);
  if (error != 0) (void)lose(pair, error);
  show();
}

/// The pair is over, which the user hears of after the last early message. Returns true: that is news.
bool Mailbox::Impl::lose(Pair& pair, int error) noexcept {
  if (pair.state == State::lost) return false;
  pair.early.detach();
  drop_attempt(pair);
  if (pair.state == State::waiting) --waiting_;
  if (pair.is_open()) end_connection(pair);
  pair.state = State::lost;
  pair.error = error;
  --living_;
  if (whole_from_ == pair.number) whole_from_ = kNoPeer;
  if (pair.wants_room) stop_wanting(pair), writable_.push_back(pair.number);
  if (pair.early_received == nullptr) losses_.push_back({pair.number, error});
  if (!origin_.inherited()) divide();
  return true;
}

void Mailbox::Impl::end_connection(Pair& pair) noexcept {
  leave_layout(pair);
  bells_.leave(pair, !origin_.inherited());
  if (woken_ == &pair) woken_ = nullptr;
  drop_connection(pair);
}

void Mailbox::Impl::drop_connection(Pair& pair) noexcept {
  pair.out.reset();
  pair.in.reset();
  pair.private_memory = nullptr;
  pair.early.detach();
  pair.connection.reset();
}

std::string Mailbox::Impl::address_of(Peer peer) const {
  const Pair* pair = find(peer);
  return pair == nullptr || !pair->address ? std::string() : pair->address->to_string();
}

}  // namespace wherry
