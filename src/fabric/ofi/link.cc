// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "fabric/ofi/link_message.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric::ofi {

using layout::LinkKind;

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
  receiver_.begin(sides);
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
  registered_ = endpoint_->expose(sides_.segment);
  receiver_.start(*endpoint_);
  service.watch(endpoint_->descriptor(), shared_from_this());
  sender_.say(message_of(LinkKind::welcome, layout::kLinkVersion, registered_->key(), registered_->address(),
                         sides_.segment.size()));
}

void Link::on_connected() {
  const std::lock_guard lock(mutex_);
  connected_ = true;
  (void)drive_locked();
  if (opening_ != nullptr && receiver_.peer()) opening_->notify();
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
  return serve_endpoint();
}

/// While a waiter drives the endpoint, reading it here, too, makes both slow.
bool Link::serve_endpoint() {
  const auto until = park_.defer(Service::Clock::now());
  if (until && endpoint_ != nullptr && !receiver_.is_broken()) {
    service_->leave_alone(endpoint_->descriptor(), *until);
    return false;
  }
  const bool more = drive_locked();
  if (receiver_.is_broken()) finish(*service_);
  return more;
}

bool Link::look(bool drives) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return false;
  const bool more = drives && serve_endpoint();
  if (is_gone()) return false;
  if (receiver_.is_broken() || (ends_at_ && *ends_at_ <= std::chrono::steady_clock::now())) finish(*service_);
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
  for (int i = 0; endpoint_ != nullptr && !receiver_.is_broken() && i < kMostRounds; ++i) {
    if (endpoint_->poll(receiver_, kMostHandled) <= 0) break;
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
  receiver_.end();
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
  if (is_gone() || endpoint_ == nullptr || receiver_.is_broken()) return;
  park_.drive(bell, Service::Clock::now());
  if (endpoint_->poll(receiver_, kMostHandled) >= 0) {
    send();
  } else {
    fail_later();
  }
  driven_ = true;
  if (receiver_.is_broken()) service_->nudge();
}

void Link::end_drive(bool sleeps) {
  const std::lock_guard lock(mutex_);
  if (endpoint_ == nullptr) return;
  // The service looks at the endpoint when the lease expires. To ask now whether it may sleep takes three system calls.
  if (!sleeps && park_.is_deferred()) return;
  const bool more = std::exchange(driven_, false) && !endpoint_->may_sleep() && drive_locked();
  if (!sleeps && !more) return;
  const bool deferred = park_.end(Bell::data);
  if (park_.end(Bell::space) || deferred) service_->resume(endpoint_->descriptor());
  if (more) service_->nudge();  // no descriptor may tell of it
}

Wake Link::wait(Bell bell, const Deadline& deadline) {
  for (;;) {
    if (is_gone()) return Wake::gone;
    if (bells_.silence(bell)) return is_gone() ? Wake::gone : Wake::rung;
    const int endpoint = begin_sleep();
    std::array<pollfd, 2> polled{pollfd{.fd = bells_.descriptor(bell), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = endpoint, .events = POLLIN, .revents = 0}};  // -1 is ignored
    const int ready = wait_for_events(polled, deadline);
    if (endpoint >= 0) end_sleep(endpoint);
    if (ready == 0) return Wake::timeout;
  }
}

/// Returns the endpoint's descriptor, which the service then ignores; -1 if the service is to drive the endpoint.
int Link::begin_sleep() {
  const std::lock_guard lock(mutex_);
  if (has_sleeper_ || endpoint_ == nullptr || !connected_) return -1;
  if (drive_locked() || receiver_.is_broken()) {
    service_->nudge();
    return -1;
  }
  const int descriptor = endpoint_->descriptor();
  has_sleeper_ = descriptor >= 0;
  if (has_sleeper_) service_->report(descriptor, false);
  return descriptor;
}

void Link::end_sleep(int descriptor) {
  const std::lock_guard lock(mutex_);
  has_sleeper_ = false;
  if (endpoint_ == nullptr || endpoint_->descriptor() != descriptor) return;  // released meanwhile
  if (drive_locked() || receiver_.is_broken()) service_->nudge();
  service_->report(descriptor, true);
}

/// Prepares a sleep on the endpoint's descriptor. Returns true if there may be more to do.
bool Link::drive_locked() {
  if (endpoint_ == nullptr || receiver_.is_broken()) return false;
  constexpr int kMostRounds = 8;
  for (int i = 0; i < kMostRounds; ++i) {
    const int handled = endpoint_->poll(receiver_, kMostHandled);
    if (handled < 0) {
      fail_later();
      return false;
    }
    send();
    if (receiver_.is_broken()) return false;
    if (opening_ != nullptr && connected_ && receiver_.peer()) opening_->notify();
    if (handled == 0 && endpoint_->may_sleep()) return false;
  }
  return true;
}

bool Link::is_ended_by_peer() {
  const std::lock_guard lock(mutex_);
  return ended_by_peer_ || (connected_ && receiver_.peer());
}

bool Link::is_ending() {
  const std::lock_guard lock(mutex_);
  return is_gone() || receiver_.is_broken() || ends_at_;
}

void Link::forget_opening() {
  const std::lock_guard lock(mutex_);
  opening_.reset();
}

bool Link::add_data_peer(AddressTexts& peers) {
  const std::lock_guard lock(mutex_);
  if (endpoint_ == nullptr) return true;
  const auto peer = endpoint_->peer();
  if (peer) peers.insert(peer->to_string());
  return peer.has_value();
}

bool Link::is_open() {
  const std::lock_guard lock(mutex_);
  return receiver_.peer().has_value() && connected_;
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
  if (!sender_.send(*endpoint_, receiver_.peer())) fail_later();
}

std::shared_ptr<const RemotePlace> Link::reach(const memory::RemoteKey& key, std::size_t bytes, int& error) {
  end_drive(true);
  std::unique_lock lock(mutex_);
  error = ENXIO;
  if (is_gone()) return nullptr;
  const std::uint32_t question = receiver_.ask();
  sender_.say(message_of(LinkKind::reach, question, key.place, key.kind, bytes));
  send();
  changed_.wait_for(lock, kAnswerTimeout, [&] { return is_gone() || receiver_.is_answered(question); });
  const auto answer = receiver_.take_answer(question);
  if (answer) error = answer->error;
  return answer && error == 0 ? std::make_shared<const RemotePlace>(answer->place) : nullptr;
}

}  // namespace wherry::fabric::ofi
