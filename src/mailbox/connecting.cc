// SPDX-License-Identifier: Apache-2.0
// Connecting and accepting; closing.cc ends pairs in order.
//
// Two mailboxes may connect to each other at the same moment. One of the two connections must then give way before
// anything is sent on it. The connection made by the mailbox with the smaller number stays. The other one is dropped
// when it is accepted, before it is granted a section. So it carries early data only, and its maker waits for the
// connection that stays.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <random>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "fabric/retrying_connect.hpp"
#include "mailbox/connector.hpp"
#include "mailbox/greeting.hpp"

namespace wherry::mailbox {
namespace {

using layout::MailboxGreeting;

/// Delay before the second attempt to reach a peer that dropped the first, or to serve a port while descriptors are
/// short. Each further attempt to reach the peer adds as much, up to a hundred times.
constexpr std::chrono::milliseconds kRetry{1};
/// How long to retry a listener whose queue is full: many mailboxes may connect to one at the same moment.
constexpr std::chrono::seconds kQueueTimeout{30};
constexpr unsigned kLongestRetry = 100;
/// After this many dropped attempts (about half a minute) the peer is lost: it accepts this side and drops it each
/// time.
constexpr unsigned kMostAttempts = 350;

void log_dropped(const std::exception& error) noexcept {
  try {
    if (log::enabled(log::Level::info)) {
      log::write(log::Level::info, std::string("dropped a connector: ") + error.what());
    }
  } catch (...) {
  }
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;  // 0 means unknown
}

}  // namespace

Connector::Connector(Pairs& pairs, EarlyData& early, WriteInterest& write_interest, Doorbells& bells,
                     SectionAllocator& sections, const MailboxOptions& options)
    : pairs_(pairs),
      early_(early),
      write_interest_(write_interest),
      bells_(bells),
      sections_(sections),
      number_(random_number()),
      overflow_(options.overflow),
      most_peers_(options.most_peers) {}

fabric::Fabric& Connector::fabric_of(const Address& address) {
  fabric::Fabric& fabric = fabric::find(address);
  if (fabric_ != nullptr && fabric_ != &fabric) {
    throw Error(
        EINVAL, "use address", address.to_string(),
        "this mailbox already uses fabric " + std::string(fabric_->name()) + "; use one mailbox for each fabric");
  }
  return fabric;
}

void Connector::set_fabric(fabric::Fabric& fabric) noexcept {
  fabric_ = &fabric;
  early_.set_fabric(fabric);
}

void Connector::listen(const Address& address) {
  if (listener_ != nullptr) {
    throw Error(EINVAL, "listen", address.to_string(),
                "already listening on " + listener_->local().to_string() + "; use another mailbox");
  }
  fabric::Fabric& fabric = fabric_of(address);
  auto listener = fabric.listen(address);
  bells_.watch(listener->descriptor(), port_);
  listener_ = std::move(listener);
  set_fabric(fabric);
  fabric_name_ = address.fabric;
}

const Address& Connector::local() const noexcept { return listener_ == nullptr ? nowhere_ : listener_->local(); }

fabric::Offer Connector::offer() const {
  MailboxGreeting greeting{};
  greeting.mailbox = number_;
  greeting.header = static_cast<std::uint32_t>(sections_.initial_bytes());
  greeting.listens = listener_ != nullptr;
  greeting.node = local().node.value_or(0);
  greeting.port = local().port.value_or(0);
  greeting.overflow = static_cast<std::uint32_t>(overflow_);
  greeting.early = static_cast<std::uint32_t>(early_.bytes());
  greeting.claims = fabric_->keeps_segments();
  return offer_with(greeting, sections_.most_bytes());
}

/// Makes a pair, and reserves memory for everything recorded about it later.
Pair& Connector::make_pair() {
  if (pairs_.living() >= most_peers_) {
    throw Error(ENOSPC, "add a peer to mailbox", local().to_string(),
                "it has " + std::to_string(pairs_.living()) + " peers already; raise MailboxOptions::most_peers");
  }
  const std::size_t numbers = pairs_.reserve_another();
  early_.reserve(numbers);
  write_interest_.reserve(numbers);
  sections_.reserve(numbers);
  return pairs_.add();
}

Mailbox::Peer Connector::connect(const Address& address, const Timeout& wait) {
  const fabric::Deadline listener_by = stream::connect_deadline(wait);
  fabric::Fabric& fabric = fabric_of(address);
  Address exact = address;
  if (!exact.node) exact.node = own_node();
  if (const Pair* known = pairs_.find_at(exact)) return known->number;
  Pair& pair = make_pair();
  pair.address = exact;
  set_fabric(fabric);
  fabric_name_ = address.fabric;
  try {
    start(pair, listener_by);
  } catch (...) {
    forget(pair.number);
    throw;
  }
  return pair.number;
}

/// Drops this side's attempt or connection, on which the peer has granted nothing. False: the pair is lost.
bool Connector::give_up(Pair& pair) noexcept {
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

/// Begins an attempt, which waits for a listener until `listener_by`. Throws Error.
void Connector::start(Pair& pair, const fabric::Deadline& listener_by) {
  pair.initiated = true;
  ++pair.attempts;
  const fabric::RetryUntil until{.nobody_listens = listener_by,
                                 .queue_full = stream::SteadyClock::now() + kQueueTimeout};
  try {
    pair.attempt = fabric::start_connect(*fabric_, *pair.address, offer(), until);
    bells_.watch(pair.attempt->descriptor(), pair.attempt_source);
    pair.state = State::connecting;
    early_.attach(pair, pair.attempt->segment());
  } catch (...) {
    pair.attempt.reset();
    throw;
  }
}

void Connector::retry_later(Pair& pair) noexcept {
  pair.state = State::waiting;
  ++waiting_;
  const Time next = stream::SteadyClock::now() + kRetry * std::min(pair.attempts, kLongestRetry);
  next_retry_ = waiting_ > 1 ? std::min(next_retry_, next) : next;
}

void Connector::retry_all(Time now) noexcept {
  if ((waiting_ == 0 && !port_is_paused_) || now < next_retry_) return;
  if (waiting_ != 0) next_retry_ = Time::max();
  for (Mailbox::Peer peer = 0; peer < pairs_.numbers(); ++peer) {
    Pair* pair = pairs_.find(peer);
    if (pair == nullptr || pair->state != State::waiting) continue;
    --waiting_;
    pair->state = State::connecting;
    try {
      if (pair->attempts >= kMostAttempts) throw Error(ECONNREFUSED, "connect", "", "it was dropped too often");
      start(*pair, now);  // it has listened before: if it no longer does, the pair is lost
    } catch (const Error& error) {
      (void)lose(*pair, error.code().value());
    } catch (...) {
      (void)lose(*pair, ENOMEM);
    }
  }
  if (!port_is_paused_) return;
  set_port_paused(false);
  accept_all();
}

void Connector::drop_attempt(Pair& pair) noexcept {
  if (pair.attempt == nullptr) return;
  if (!origin_.inherited()) bells_.unwatch(pair.attempt->descriptor());
  pair.attempt.reset();
}

bool Connector::send_early(Pair& pair, Mailbox::Outgoing& message) noexcept {
  if (!pair.sends_early() || message.taken != 0) return false;
  if (pair.is_open() && (pair.gone || pair.in->finished() != 0)) return false;
  if (early_.append(pair, message)) return true;
  if (pair.early.claimed()) finish_attempt(pair);
  return false;
}

void Connector::finish_attempt(Pair& pair) noexcept {
  if (pair.attempt == nullptr) return;
  try {
    auto connection = pair.attempt->try_finish();
    if (connection == nullptr) return;
    drop_attempt(pair);
    open(pair, std::move(connection));
  } catch (const Error& error) {
    // The peer may have dropped this attempt for its own. If not, the next attempt shows the cause.
    if (error.code().value() != ECONNRESET) return (void)lose(pair, error.code().value());
    if (give_up(pair)) retry_later(pair);
  } catch (...) {
    (void)lose(pair, ENOMEM);
  }
}

void Connector::accept_all() noexcept {
  if (listener_ == nullptr || port_is_paused_) return;
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
    set_port_paused(true);
  }
}

/// Pauses the port, which cannot be served now and must not wake this side; or resumes it.
void Connector::set_port_paused(bool paused) noexcept {
  if (port_is_paused_ == paused) return;
  port_is_paused_ = paused;
  next_retry_ = stream::SteadyClock::now() + kRetry;
  if (paused) return bells_.unwatch(listener_->descriptor());
  try {
    bells_.watch(listener_->descriptor(), port_);
  } catch (const std::exception& error) {
    log_dropped(error);
    port_is_paused_ = true;
  }
}

/// The pair that this side is making to the mailbox `number` at `address`. A pair that was granted a section is
/// complete, and does not count.
Pair* Connector::crossing(const Address& address, std::uint64_t number) const noexcept {
  if (number == number_) return nullptr;
  for (const auto& pair : pairs_) {
    if (pair == nullptr || !pair->initiated || pair->state == State::lost || !pair->address) continue;
    if (pair->address->node != address.node || pair->address->port != address.port) continue;
    if (pair->is_open() && (pair->out->capacity() != 0 || pair->mailbox != number || !pair->in->is_untouched()))
      continue;
    return pair.get();
  }
  return nullptr;
}

void Connector::accept(std::unique_ptr<fabric::Connection> connection) {
  const MailboxGreeting greeting = greeting_of(*connection);
  std::optional<Address> address;
  if (greeting.listens != 0) address = Address{fabric_name_, greeting.node, greeting.port};
  const bool departed = fabric_->keeps_segments() && connection->peer_gone();
  const LeftBehind left = left_behind(*connection, greeting.early);
  // A child process of the peer may hold open the socket of a connection that the peer gave up.
  if (left.given_up || (departed && !left.messages)) return;
  Pair* crossed = address ? crossing(*address, greeting.mailbox) : nullptr;
  if (crossed != nullptr) {
    if (number_ > greeting.mailbox && !departed) return change_over(*crossed, std::move(connection));
    // The connection is dropped; its early messages count as the pair's.
    if (const int error = early_.claim(*crossed, *connection); error != 0) (void)lose(*crossed, error);
    return bells_.signal_descriptor();
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

/// Replaces this side's attempt or connection by the peer's. The user knows the pair, and events of the current batch
/// may name it. So a failure ends the pair as a loss, and nothing is freed.
void Connector::change_over(Pair& pair, std::unique_ptr<fabric::Connection> connection) noexcept {
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

/// Opens the pair on this connection. Throws Error, std::bad_alloc: the pair then has no connection.
void Connector::open(Pair& pair, std::unique_ptr<fabric::Connection> connection) {
  const MailboxGreeting greeting = greeting_of(*connection);
  pair.connection = std::move(connection);
  pair.private_memory = pair.connection->private_memory();
  reinterpret_cast<layout::MailboxPage*>(pair.connection->segment().data())->version = layout::kMailboxVersion;
  pair.mailbox = greeting.mailbox;
  pair.peers_header = greeting.header;
  pair.gone = false;
  try {
    pair.out.emplace(*pair.connection, greeting.overflow, greeting.early);
    pair.in.emplace(*pair.connection, overflow_, early_.bytes());
    if (greeting.claims != 0) {
      early_.attach(pair, pair.connection->segment());
    } else if (pair.early.any()) {
      throw Error(EPROTO, "exchange messages with", pair.connection->peer().address.to_string(),
                  "the peer cannot map messages that were already sent to it; use the same fabric on both sides");
    } else {
      pair.early.detach();
    }
    bells_.join(pair);
  } catch (...) {
    drop_connection(pair);
    throw;
  }
  pair.state = State::open;
  // Before the first grant: after it the peer sends into the section.
  const int error = early_.claim(pair, *pair.connection);
  pair.claims_again = greeting.early != 0;
  sections_.join(pair);
  if (error != 0) (void)lose(pair, error);
}

bool Connector::end_of_gone(Pair& pair) noexcept {
  // A connection that ends before it was granted a section gave way to the peer's own, which is on its way.
  if (!pair.initiated || pair.out->capacity() != 0) return lose(pair, error_of_gone(pair));
  if (!give_up(pair)) return true;
  pair.mailbox = 0;
  retry_later(pair);
  return false;
}

bool Connector::lose(Pair& pair, int error) noexcept {
  if (pair.state == State::lost) return false;
  pair.early.detach();
  drop_attempt(pair);
  if (pair.state == State::waiting) --waiting_;
  if (pair.is_open()) end_connection(pair);
  pairs_.end(pair, error);
  write_interest_.on_loss(pair);
  if (!origin_.inherited()) sections_.allocate();
  return true;
}

void Connector::end_connection(Pair& pair) noexcept {
  sections_.leave(pair);
  bells_.leave(pair, !origin_.inherited());
  drop_connection(pair);
}

void Connector::drop_connection(Pair& pair) noexcept {
  pair.private_memory = nullptr;
  pair.early.detach();
  // A pending put reads the staging memory of `out` until the connection is destroyed.
  pair.connection.reset();
  pair.out.reset();
  pair.in.reset();
}

}  // namespace wherry::mailbox
