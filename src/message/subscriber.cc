// SPDX-License-Identifier: Apache-2.0
#include "message/subscriber.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/config.hpp"
#include "message/handshake.hpp"

namespace wherry {
namespace {

using message::SubscriberConnection;

/// Interval of the liveness check in a subscriber that polls and never sleeps.
constexpr std::chrono::milliseconds kLookInterval{1};

/// How long one of several publishers is served while it has messages: long enough to run in parallel with the
/// subscriber, in memory that both cores have cached, before the next publisher is woken.
constexpr std::chrono::microseconds kTurn{400};

std::uint32_t places_for(std::size_t queue) {
  if (queue == 0 || queue > layout::kMessageMaxQueue) {
    throw Error(
        EINVAL, "make a subscriber", "",
        "its queue has 1 to " + std::to_string(layout::kMessageMaxQueue) + " messages, not " + std::to_string(queue));
  }
  return static_cast<std::uint32_t>(std::bit_ceil(queue));
}

void touch(std::span<const std::byte> memory) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < memory.size(); at += kPage) {
    (void)*static_cast<const volatile std::byte*>(memory.data() + at);
  }
}

}  // namespace

Subscriber::Impl::Impl(SubscriberOptions options)
    : EndpointBase(fabric::Bell::data),
      places_(places_for(options.queue)),
      overflow_(options.overflow),
      prefault_(options.prefault) {
  config::check(config::Key::spin);
}

void Subscriber::Impl::join(std::unique_ptr<fabric::Connection> connection) {
  auto publisher = message::make_subscriber_connection(std::move(connection), places_, overflow_);
  if (prefault_) touch(publisher->connection().shown());
  publishers_.reserve(publishers_.size() + 1);
  wait_set_.join(publisher->connection());
  publishers_.push_back(std::move(publisher));
}

void Subscriber::Impl::join_new() {
  try {
    setup_.join_new(message::subscribers_offer(places_, overflow_),
                    [this](std::unique_ptr<fabric::Connection> connection) { join(std::move(connection)); });
  } catch (const Error& error) {
    // take() must distinguish a refusal from a publisher that has ended.
    refused_ = refused_ || error.code().value() == ECONNREFUSED;
    throw;
  }
}

void Subscriber::Impl::listen(const Address& address) {
  (void)setup_.fabric_of(address).share(4096);  // Throws if the fabric cannot share memory.
  setup_.listen(address);
}

void Subscriber::Impl::connect(const Address& address, Timeout timeout) {
  (void)setup_.fabric_of(address).share(4096);
  join(setup_.connect(address, message::subscribers_offer(places_, overflow_), stream::connect_deadline(timeout)));
}

void Subscriber::Impl::start_connect(const Address& address, Timeout wait) {
  (void)setup_.fabric_of(address).share(4096);
  setup_.start_connect(address, message::subscribers_offer(places_, overflow_), stream::connect_deadline(wait));
}

std::size_t Subscriber::Impl::admit(std::size_t wanted, Timeout timeout) {
  return wait_for_peers(wanted, timeout, [this] { return publishers(); }, [this] { join_new(); });
}

std::uint64_t Subscriber::Impl::dropped() const noexcept {
  std::uint64_t count = dropped_;
  for (const auto& publisher : publishers_) count += publisher->dropped();
  return count;
}

int Subscriber::Impl::descriptor() {
  const int descriptor = wait_set_.descriptor();
  polled_ = true;
  rearm_descriptor();
  return descriptor;
}

// Taking --------------------------------------------------------------------------------------------------------------

/// Takes a message of the publisher whose turn it is, or finds that a publisher is gone. Never blocks, and makes no
/// system call.
Result Subscriber::Impl::next(SubscriberConnection*& from, SubscriberConnection::Taken& taken) {
  if (cancelled()) return Result::failure(ECANCELED);
  const std::size_t count = publishers_.size();
  bool new_turn = count > 1 && stream::has_passed(turn_ends_);
  if (new_turn) ++turn_;
  for (std::size_t i = 0; i < count; ++i, ++turn_, new_turn = true) {
    if (turn_ >= count) turn_ = 0;
    const SubscriberConnection::Look look = publishers_[turn_]->take(taken);
    if (look == SubscriberConnection::Look::message) {
      from = publishers_[turn_].get();
      if (new_turn) begin_turn(*from);
      return Result::moved(taken.bytes.size());
    }
    if (look == SubscriberConnection::Look::inherited) return Result::failure(ENOTSUP);
    if (look != SubscriberConnection::Look::nothing) return remove_publisher(turn_, look);
  }
  for (const auto& publisher : publishers_) publisher->settle();
  return count == 0 ? result_without_publishers() : Result::blocked();
}

void Subscriber::Impl::begin_turn(SubscriberConnection& publisher) noexcept {
  publisher.set_contended(served_ != &publisher);
  served_ = &publisher;
  turn_ends_ = stream::SteadyClock::now() + kTurn;
}

/// Removes a publisher that has ended, died or broken the protocol. Returns the reason.
Result Subscriber::Impl::remove_publisher(std::size_t which, SubscriberConnection::Look why) noexcept {
  SubscriberConnection& publisher = *publishers_[which];
  dropped_ += publisher.dropped();
  wait_set_.leave(publisher.connection());
  publishers_.erase(publishers_.begin() + static_cast<std::ptrdiff_t>(which));
  for (const auto& other : publishers_) other->set_contended(false);  // only one may be left
  if (why == SubscriberConnection::Look::end) return Result::at_end();
  lost_ = true;
  return Result::failure(why == SubscriberConnection::Look::lost ? ECONNRESET : EPROTO);
}

Result Subscriber::Impl::result_without_publishers() const noexcept {
  if (!setup_.set_up()) return Result::failure(ENOTCONN);
  if (setup_.open()) return Result::blocked();
  if (lost_) return Result::failure(ECONNRESET);
  return refused_ ? Result::failure(ECONNREFUSED) : Result::at_end();
}

bool Subscriber::Impl::waiting() const noexcept {
  return cancelled() || std::any_of(publishers_.begin(), publishers_.end(),
                                    [](const auto& publisher) { return publisher->waiting(); });
}

Result Subscriber::Impl::try_take(SubscriberConnection*& from, SubscriberConnection::Taken& taken) {
  while (true) {
    Result result = next(from, taken);
    if (result.would_block()) {
      look_for_deaths(polled_);
      if (polled_) rearm_descriptor();
      result = next(from, taken);
    }
    // The end of one publisher is not reported while others are left or may come.
    if (!result.ended() || (publishers_.empty() && !setup_.open())) return result;
  }
}

Result Subscriber::Impl::take(SubscriberConnection*& from, SubscriberConnection::Taken& taken,
                              fabric::Deadline deadline) {
  const auto ready = [this] { return waiting(); };
  while (true) {
    const Result result = next(from, taken);
    if (result.ended() && (!publishers_.empty() || setup_.open())) continue;
    if (!result.would_block()) return result;
    if (stream::has_passed(deadline)) return Result::failure(ETIMEDOUT);
    if (spin_.look(ready, deadline)) continue;
    sleep_unless(deadline, ready);
    if (!waiting()) {
      look_for_deaths(true);
      join_new_quietly([this] { join_new(); });
    }
    if (polled_) rearm_descriptor();
  }
}

void Subscriber::Impl::rearm_descriptor() {
  wait_set_.rearm([this] { return waiting() || (publishers_.empty() && !setup_.open()); });
}

void Subscriber::Impl::look_for_deaths(bool always) noexcept {
  if (!always) {
    const auto now = stream::SteadyClock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
  }
  for (const auto& publisher : publishers_) publisher->look();
}

}  // namespace wherry
