// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "fabric/check.hpp"
#include "fabric/ofi/link_message.hpp"

namespace wherry::fabric::ofi {

using layout::LinkKind;
using layout::LinkMessage;

namespace {

/// After the end of the rendezvous socket: time for the data endpoint to deliver its data and report its own end.
constexpr std::chrono::seconds kEndTogether{1};
/// Time for the peer's fabric to answer a request.
constexpr std::chrono::seconds kAnswerTimeout{10};
/// Completions of one link that are handled before other links have their turn.
constexpr int kMostHandled = 256;

}  // namespace

void Link::begin(Service& service, Meeting meeting, const Sides& sides) {
  meeting_ = std::move(meeting);
  sides_ = sides;
  service_ = &service;
  service.add(this, shared_from_this());
  service.watch(meeting_.socket.get(), shared_from_this());
}

void Link::dial(Service& service, Meeting meeting, const Sides& sides, std::uint16_t data_port) {
  const std::lock_guard lock(mutex_);
  begin(service, std::move(meeting), sides);
  start(service, std::make_unique<Endpoint>(service.domain(), meeting_.local, meeting_.remote.with_port(data_port),
                                            meeting_.token, this));
}

void Link::expect(Service& service, Meeting meeting, const Sides& sides) {
  const std::lock_guard lock(mutex_);
  begin(service, std::move(meeting), sides);
  service.expect(meeting_.token, shared_from_this());
}

void Link::accept(Service& service, Knock knock) {
  const std::lock_guard lock(mutex_);
  if (is_gone() || endpoint_ != nullptr) return;
  try {
    start(service, std::make_unique<Endpoint>(service.domain(), std::move(knock), this));
  } catch (const Error& error) {
    log::write(log::Level::error, std::string("ofi: cannot accept a data endpoint: ") + error.what());
    finish(service);
  }
}

void Link::start(Service& service, std::unique_ptr<Endpoint> endpoint) {
  endpoint_ = std::move(endpoint);
  registered_ = service.domain().expose(sides_.segment);
  if (sides_.exposes) exposed_.emplace(service.domain());
  service.watch(endpoint_->descriptor(), shared_from_this());
  sender_.say(message_of(LinkKind::welcome, layout::kLinkVersion, registered_->key(), registered_->address(),
                         sides_.segment.size()));
}

void Link::on_connected() {
  const std::lock_guard lock(mutex_);
  connected_ = true;
  if (opening_ != nullptr && peer_) opening_->notify();
  (void)drive_locked();
}

void Link::on_end(int error) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return;
  if (error != 0 && !connected_) {
    // A peer that closes refuses the data endpoint first, and then ends the rendezvous socket.
    log::write(log::Level::info, "ofi: a data endpoint failed: error " + std::to_string(error));
    fail_later();
    return;
  }
  finish(*service_);
}

bool Link::serve(int descriptor) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return false;
  if (descriptor == meeting_.socket.get()) {
    on_socket();
    return false;
  }
  // While a waiter drives the endpoint, reading it here, too, makes both slow.
  if (const auto until = park_.defer(Service::Clock::now()); until && !broken_) {
    service_->leave_alone(descriptor, *until);
    return false;
  }
  const bool more = drive_locked();
  if (broken_) finish(*service_);
  return more;
}

bool Link::look() {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return false;
  const bool more = drive_locked();
  if (broken_ || (ends_at_ && *ends_at_ <= std::chrono::steady_clock::now())) finish(*service_);
  return more;
}

/// Handles an event on the rendezvous socket. Nothing is ever sent on it, so it is readable only when it has ended.
void Link::on_socket() {
  std::byte byte{};
  const auto got = ::recv(meeting_.socket.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  ended_by_peer_ = got == 0;
  if (got != 0 || !connected_) {
    finish(*service_);
    return;
  }
  // The peer has ended the socket. Data that it sent before still arrives at the data endpoint, whose end comes later.
  service_->unwatch(meeting_.socket.get());
  ends_at_ = std::chrono::steady_clock::now() + kEndTogether;
}

void Link::finish(Service& service) {
  constexpr int kMostRounds = 4096;
  // Handles the bytes and words that the peer sent before its end, unless it broke the protocol.
  for (int i = 0; endpoint_ != nullptr && !broken_ && i < kMostRounds; ++i) {
    if (endpoint_->poll(*this, kMostHandled) <= 0) break;
  }
  release(service);
  bells_.set_gone();
  sender_.clear();
  bells_.notify_all();
  if (opening_ != nullptr) opening_->notify();
  changed_.notify_all();
}

void Link::release(Service& service) noexcept {
  service.unwatch(meeting_.socket.get());
  if (endpoint_ != nullptr) service.unwatch(endpoint_->descriptor());
  service.remove(this);
  service.expect_no_longer(meeting_.token);
  endpoint_.reset();
  exposed_.reset();
  registered_.reset();
}

void Link::close() noexcept {
  if (service_ == nullptr) return;
  const std::lock_guard serving(service_->mutex());
  const auto keep = shared_from_this();
  const std::lock_guard lock(mutex_);
  release(*service_);
  bells_.set_gone();
  ::shutdown(meeting_.socket.get(), SHUT_RDWR);
}

/// The endpoint cannot send any more. Its end is reported after everything that it has received.
void Link::fail_later() {
  if (!ends_at_) ends_at_ = std::chrono::steady_clock::now() + kEndTogether;
}

void Link::drive(Bell bell) {
  const std::lock_guard lock(mutex_);
  if (is_gone() || endpoint_ == nullptr || broken_) return;
  park_.drive(bell, Service::Clock::now());
  if (endpoint_->poll(*this, kMostHandled) >= 0) {
    send();
  } else {
    fail_later();
  }
  driven_ = true;
  if (broken_) service_->nudge();
}

void Link::end_drive(bool sleeps) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(driven_, false) && !is_gone() && drive_locked()) service_->nudge();
  if (!sleeps) return;
  const bool deferred = park_.end(Bell::data);
  if ((park_.end(Bell::space) || deferred) && endpoint_ != nullptr) service_->resume(endpoint_->descriptor());
}

/// Prepares a sleep on the endpoint's descriptor. Returns true if there may be more to do.
bool Link::drive_locked() {
  if (endpoint_ == nullptr || broken_) return false;
  constexpr int kMostRounds = 8;
  for (int i = 0; i < kMostRounds; ++i) {
    const int handled = endpoint_->poll(*this, kMostHandled);
    if (handled < 0) {
      fail_later();
      return false;
    }
    send();
    if (broken_) return false;
    if (handled == 0 && endpoint_->may_sleep()) return false;
  }
  return true;
}

bool Link::is_ended_by_peer() {
  const std::lock_guard lock(mutex_);
  return ended_by_peer_ || (connected_ && peer_);
}

bool Link::is_ending() {
  const std::lock_guard lock(mutex_);
  return is_gone() || broken_ || ends_at_;
}

void Link::forget_opening() {
  const std::lock_guard lock(mutex_);
  opening_.reset();
}

bool Link::is_open() {
  const std::lock_guard lock(mutex_);
  return peer_.has_value() && connected_;
}

std::size_t Link::put(std::uint64_t offset, std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return 0;
  const std::size_t taken = sender_.put(offset, source);
  send();
  return taken;
}

bool Link::push(Item item) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return false;
  sender_.push(std::move(item));
  send();
  return true;
}

bool Link::has_room() {
  const std::lock_guard lock(mutex_);
  return sender_.has_room();
}

Result Link::flush(const Deadline& deadline) {
  end_drive(true);
  std::unique_lock lock(mutex_);
  const LinkSender::Flush flush = sender_.begin_flush();
  send();
  const auto ended = [&] { return is_gone() || sender_.is_over(flush); };
  if (!deadline) {
    changed_.wait(lock, ended);
  } else if (!changed_.wait_until(lock, *deadline, ended)) {
    return Result::failure(ETIMEDOUT);
  }
  return sender_.is_over(flush) ? Result::moved(0) : Result::failure(ECONNRESET);
}

/// Sends what is queued, as far as the endpoint takes it.
void Link::send() {
  if (endpoint_ == nullptr || !connected_ || ends_at_) return;
  if (!sender_.send(*endpoint_, peer_)) fail_later();
}

std::shared_ptr<const RemotePlace> Link::reach(const memory::RemoteKey& key, std::size_t bytes, int& error) {
  end_drive(true);
  std::unique_lock lock(mutex_);
  error = ENXIO;
  if (is_gone()) return nullptr;
  const std::uint32_t number = ++reach_number_;
  reaches_.emplace(number, std::nullopt);
  sender_.say(message_of(LinkKind::reach, number, key.place, key.kind, bytes));
  send();
  changed_.wait_for(lock, kAnswerTimeout, [&] { return is_gone() || reaches_.at(number).has_value(); });
  const auto answer = reaches_.extract(number).mapped();
  if (answer) error = answer->error;
  return answer && error == 0 ? std::make_shared<const RemotePlace>(answer->place) : nullptr;
}

void Link::on_sent() {
  if (sender_.on_sent()) changed_.notify_all();
}

void Link::on_read() {
  sender_.on_read();
  changed_.notify_all();
}

void Link::on_word(std::uint64_t data) {
  if (broken_) return;
  const PeerSlots::Slot* const slot = slots_.find(layout::slot_of(data));
  if (slot == nullptr) {
    break_off("a word for a place that was never named");
    return;
  }
  store(sides_.segment.data() + slot->offset, layout::slot_value(data), slot->bell);
}

void Link::on_message(const LinkMessage& message) {
  if (broken_) return;
  std::optional<Bell> bell;
  switch (static_cast<LinkKind>(message.kind)) {
    case LinkKind::welcome:
      on_welcome(message);
      return;
    case LinkKind::slot:
      if (!slots_.add(message, sides_.segment.size())) break;
      return;
    case LinkKind::word:
      if (!is_word(message.a, sides_.segment.size()) || !parse_bell(message.number, bell)) break;
      store(sides_.segment.data() + message.a, message.b, bell);
      return;
    case LinkKind::region_word: {
      std::byte* const at = exposed_ ? exposed_->word_at(message.c, message.a) : nullptr;
      if (at == nullptr) return break_off("a word outside exposed memory");
      store(at, message.b, {});
      return;
    }
    case LinkKind::flush:
      if (!sender_.answer(message_of(LinkKind::flushed, 0, message.a))) break;
      return;
    case LinkKind::flushed:
      if (!sender_.on_flushed(message.a)) break;
      changed_.notify_all();
      return;
    case LinkKind::reach:
      on_reach(message);
      return;
    case LinkKind::reached:
      on_reached(message);
      return;
  }
  break_off("a message that makes no sense");
}

void Link::on_welcome(const LinkMessage& message) {
  if (peer_ || message.number != layout::kLinkVersion || message.c != sides_.peer_bytes) {
    break_off("a welcome of another version or of another segment");
    return;
  }
  peer_ = RemotePlace{message.a, message.b};
  if (opening_ != nullptr && connected_) opening_->notify();
  changed_.notify_all();
}

void Link::on_reach(const LinkMessage& message) {
  RemotePlace place;
  const int error = exposed_ ? exposed_->find({message.a, message.b}, message.c, place) : ENXIO;
  const auto code = static_cast<std::uint64_t>(error);
  if (!sender_.answer(message_of(LinkKind::reached, message.number, place.key, place.address, code)))
    break_off("questions, and takes no answers");
}

void Link::on_reached(const LinkMessage& message) {
  const auto asked = reaches_.find(message.number);
  if (asked == reaches_.end()) return;  // the answer came after the timeout
  const bool is_errno = message.c < 4096;
  asked->second = Answer{{message.a, message.b}, is_errno ? static_cast<int>(message.c) : EPROTO};
  changed_.notify_all();
}

/// Stores a word of the peer, after everything that the peer put before.
void Link::store(std::byte* at, std::uint64_t value, std::optional<Bell> bell) {
  reinterpret_cast<wherry::layout::Word*>(at)->store(value, std::memory_order_release);  // SIGNAL
  if (bell) bells_.ring(*bell);
}

void Link::break_off(const char* reason) {
  if (!std::exchange(broken_, true)) log::write(log::Level::warning, std::string("ofi: a peer sent ") + reason);
}

}  // namespace wherry::fabric::ofi
