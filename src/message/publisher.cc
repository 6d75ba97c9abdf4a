// SPDX-License-Identifier: Apache-2.0
#include "message/publisher.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/config.hpp"
#include "message/handshake.hpp"

namespace wherry {
namespace {

using message::Slabs;

constexpr std::size_t kMinPool = 4096;

/// Interval of the liveness check in a publisher that never waits: a system call for each subscriber.
constexpr std::int64_t kLookIntervalNs = 10'000'000;

/// Longest sleep of a publisher that is not woken because fewer messages came back than it asked for.
constexpr std::chrono::milliseconds kMostInBulk{20};

std::int64_t coarse_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

std::size_t pool_size(std::size_t asked) {
  if (asked == 0) asked = config::number(config::Key::pool, kMinPool, layout::kMessageMaxPool);
  if (asked > layout::kMessageMaxPool) {
    throw Error(EINVAL, "make a pool", "", "a pool has at most " + std::to_string(layout::kMessageMaxPool) + " bytes");
  }
  return std::bit_ceil(std::max(asked, kMinPool));
}

}  // namespace

Publisher::Impl::Impl(PublisherOptions options)
    : EndpointBase(fabric::Bell::space), pool_bytes_(pool_size(options.pool_bytes)), prefault_(options.prefault) {
  config::check(config::Key::spin);
}

Publisher::Impl::~Impl() {
  for (const auto& subscriber : subscribers_) {
    if (!origin_.inherited() && subscriber->serves()) subscriber->finish();
  }
  subscribers_.clear();
  if (slabs_ != nullptr) slabs_->release();
}

/// Makes the pool at the first address, in memory of that address's fabric.
const fabric::Offer& Publisher::Impl::offer_on(const Address& address) {
  fabric::Fabric& fabric = setup_.fabric_of(address);
  if (slabs_ != nullptr) return offer_;
  const auto memory = fabric.share(pool_bytes_);
  if (prefault_) {
    constexpr std::size_t kPage = 4096;
    for (std::size_t at = 0; at < pool_bytes_; at += kPage) memory->bytes()[at] = std::byte{0};
  }
  offer_ = message::publishers_offer(memory);
  slabs_ = new Slabs(memory);
  return offer_;
}

void Publisher::Impl::join(std::unique_ptr<fabric::Connection> connection) {
  auto subscriber = message::make_publisher_connection(std::move(connection));
  subscribers_.reserve(subscribers_.size() + 1);
  wait_set_.join(subscriber->connection());
  subscribers_.push_back(std::move(subscriber));
}

void Publisher::Impl::join_new() {
  setup_.join_new(offer_, [this](std::unique_ptr<fabric::Connection> connection) { join(std::move(connection)); });
  look_for_deaths();
}

void Publisher::Impl::listen(const Address& address) {
  offer_on(address);
  setup_.listen(address);
}

void Publisher::Impl::connect(const Address& address, Timeout timeout) {
  join(setup_.connect(address, offer_on(address), stream::connect_deadline(timeout)));
}

void Publisher::Impl::start_connect(const Address& address, Timeout wait) {
  setup_.start_connect(address, offer_on(address), stream::connect_deadline(wait));
}

std::size_t Publisher::Impl::admit(std::size_t wanted, Timeout timeout) {
  return wait_for_peers(wanted, timeout, [this] { return subscribers(); }, [this] { join_new(); });
}

std::size_t Publisher::Impl::subscribers() const noexcept {
  return static_cast<std::size_t>(std::count_if(subscribers_.begin(), subscribers_.end(),
                                                [](const auto& subscriber) { return subscriber->serves(); }));
}

int Publisher::Impl::descriptor() {
  const int descriptor = wait_set_.descriptor();
  polled_ = true;
  return descriptor;
}

// Loaning -------------------------------------------------------------------------------------------------------------

/// Chooses a block in this order: a ready block, blocks that subscribers have released, memory not used before.
Result Publisher::Impl::find(Block& block, std::size_t bytes) {
  if (slabs_ == nullptr) return Result::failure(ENOTCONN);
  if (cancelled()) return Result::failure(ECANCELED);
  if (bytes > pool_bytes_) return Result::failure(EMSGSIZE);
  block = slabs_->take_ready(bytes);
  if (block == Slabs::kNone) {
    reclaim();
    block = slabs_->take(bytes);
  }
  if (block != Slabs::kNone) return Result::moved(bytes);
  return in_flight() ? Result::blocked() : Result::failure(ENOBUFS);
}

Result Publisher::Impl::try_loan(Block& block, std::size_t bytes) {
  Result result = find(block, bytes);
  if (!result.would_block()) return result;
  look_for_deaths();
  if (polled_) rearm_descriptor([this] { return reclaim() != 0; });
  return find(block, bytes);
}

Result Publisher::Impl::loan(Block& block, std::size_t bytes, fabric::Deadline deadline) {
  while (true) {
    const Result result = find(block, bytes);
    if (!result.would_block()) return result;
    if (stream::has_passed(deadline)) return Result::failure(ETIMEDOUT);
    wait(deadline, [this] { return reclaim() != 0; });
  }
}

std::size_t Publisher::Impl::reclaim() noexcept {
  std::size_t count = 0;
  for (const auto& subscriber : subscribers_) count += subscriber->reclaim(*slabs_);
  return count;
}

bool Publisher::Impl::in_flight() const noexcept {
  return std::any_of(subscribers_.begin(), subscribers_.end(),
                     [](const auto& subscriber) { return subscriber->in_flight() != 0; });
}

// Publishing ----------------------------------------------------------------------------------------------------------

bool Publisher::Impl::all_subscribers_ready() noexcept {
  return std::all_of(subscribers_.begin(), subscribers_.end(),
                     [this](const auto& subscriber) { return subscriber->ready(*slabs_); });
}

Result Publisher::Impl::hand_out(Block block, std::size_t bytes) {
  if (cancelled()) return Result::failure(ECANCELED);
  if (!all_subscribers_ready()) return Result::blocked();
  bool anybody = setup_.open();
  for (const auto& subscriber : subscribers_) {
    subscriber->push(*slabs_, block, bytes);
    anybody = anybody || subscriber->serves();
  }
  if (!anybody) return Result::failure(EPIPE);
  slabs_->drop(block);
  watch_for_deaths();
  return Result::moved(bytes);
}

Result Publisher::Impl::try_publish(Block block, std::size_t bytes) {
  const Result result = hand_out(block, bytes);
  if (!result.would_block()) return result;
  look_for_deaths();
  if (polled_) rearm_descriptor([this] { return all_subscribers_ready(); });
  return hand_out(block, bytes);
}

Result Publisher::Impl::publish(Block block, std::size_t bytes, fabric::Deadline deadline) {
  while (true) {
    const Result result = hand_out(block, bytes);
    if (!result.would_block()) return result;
    if (stream::has_passed(deadline)) return Result::failure(ETIMEDOUT);
    wait(deadline, [this] { return all_subscribers_ready(); });
  }
}

/// Waits for a return or a death. Sleeps until half of the messages in flight have come back, for at most 20 ms, then
/// until any has. To wake for one message and sleep again costs more than to write the message.
template <class Ready>
void Publisher::Impl::wait(fabric::Deadline deadline, Ready&& ready) {
  // ready() takes back the messages it finds, so a later call may find none: the result is remembered.
  bool came = false;
  const auto news = [&] { return came = came || cancelled() || ready(); };
  if (spin_.look(news, deadline)) return;
  for (const auto& subscriber : subscribers_) subscriber->want_half();
  const auto in_bulk = stream::SteadyClock::now() + kMostInBulk;
  sleep_unless(deadline ? std::min(*deadline, in_bulk) : in_bulk, news);
  if (!news() && !stream::has_passed(deadline)) {
    for (const auto& subscriber : subscribers_) subscriber->want_any();
    sleep_unless(deadline, news);
  }
  if (!news()) {
    look_for_deaths();
    join_new_quietly([this] { join_new(); });
  }
  if (polled_) rearm_descriptor([&] { return cancelled() || ready(); });
}

template <class Ready>
void Publisher::Impl::rearm_descriptor(Ready&& ready) {
  for (const auto& subscriber : subscribers_) subscriber->want_any();
  wait_set_.rearm(ready);
}

// Deaths --------------------------------------------------------------------------------------------------------------

void Publisher::Impl::watch_for_deaths() noexcept {
  const std::int64_t now = coarse_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + kLookIntervalNs;
  look_for_deaths();
}

void Publisher::Impl::look_for_deaths() noexcept {
  for (const auto& subscriber : subscribers_) subscriber->look();
  remove_ended();
}

void Publisher::Impl::remove_ended() noexcept {
  std::erase_if(subscribers_, [this](const auto& subscriber) {
    if (!subscriber->over()) return false;
    subscriber->reclaim_all(*slabs_);
    wait_set_.leave(subscriber->connection());
    return true;
  });
}

}  // namespace wherry
