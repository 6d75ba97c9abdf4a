// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "fabric/ofi/link_message.hpp"

namespace wherry::fabric::ofi {
namespace {

/// For the data endpoint to report its own end, behind its data, after the rendezvous socket's.
constexpr std::chrono::seconds kEndTogether{1};
/// Completions that are handled before others have a turn.
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
  controls_.push_back(message_of(layout::LinkKind::welcome, layout::kLinkVersion, registered_->key(),
                                 registered_->address(), sides_.segment.size()));
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
    // A peer that closes refuses first, and then ends the rendezvous socket.
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

/// Nothing is ever sent on it: it is readable when it has ended.
void Link::on_socket() {
  std::byte byte{};
  const auto got = ::recv(meeting_.socket.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  ended_by_peer_ = got == 0;
  if (got != 0 || !connected_) {
    finish(*service_);
    return;
  }
  // The process or its fabric has ended it. What it sent before comes by the data endpoint, which ends behind it.
  service_->unwatch(meeting_.socket.get());
  ends_at_ = std::chrono::steady_clock::now() + kEndTogether;
}

void Link::finish(Service& service) {
  constexpr int kMostRounds = 4096;
  for (int i = 0; endpoint_ != nullptr && i < kMostRounds; ++i) {
    if (endpoint_->poll(*this, kMostHandled) <= 0) break;
  }
  release(service);
  gone_.store(true, std::memory_order_release);  // GONE
  queue_.clear();
  controls_.clear();
  for (const EventBell& bell : bells_) bell.notify();
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
  gone_.store(true, std::memory_order_release);  // GONE
  ::shutdown(meeting_.socket.get(), SHUT_RDWR);
}

/// The endpoint sends no more. Its news follow what it has received.
void Link::fail_later() {
  if (!ends_at_) ends_at_ = std::chrono::steady_clock::now() + kEndTogether;
}

bool Link::drive() {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return false;
  const bool more = drive_locked();
  if (broken_) service_->nudge();
  return more;
}

/// Returns whether it stopped before the end.
bool Link::drive_locked() {
  if (endpoint_ == nullptr || broken_) return false;
  constexpr int kMostRounds = 8;
  for (int i = 0; i < kMostRounds; ++i) {
    const int handled = endpoint_->poll(*this, kMostHandled);
    if (handled < 0) {
      fail_later();
      return false;
    }
    send_what_waits();
    if (broken_) return false;
    if (handled == 0 && endpoint_->may_sleep()) return false;
  }
  return true;
}

bool Link::is_ended_by_peer() {
  const std::lock_guard lock(mutex_);
  return ended_by_peer_ || (connected_ && peer_);
}

void Link::forget_opening() {
  const std::lock_guard lock(mutex_);
  opening_.reset();
}

bool Link::is_open() {
  const std::lock_guard lock(mutex_);
  return peer_.has_value() && connected_;
}

}  // namespace wherry::fabric::ofi
