// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "fabric/check.hpp"

namespace wherry::fabric::ofi {
namespace {

using layout::LinkBell;
using layout::LinkKind;
using layout::LinkMessage;
using Clock = std::chrono::steady_clock;

/// For the data endpoint to report its own end, behind its data, after the rendezvous socket's.
constexpr std::chrono::seconds kEndTogether{1};
/// For the peer's fabric to answer a question.
constexpr std::chrono::seconds kAnswerTimeout{10};
/// Completions that are handled before others have a turn.
constexpr int kMostHandled = 256;

constexpr LinkBell bell_number(std::optional<Bell> bell) {
  if (!bell) return LinkBell::none;
  return *bell == Bell::data ? LinkBell::data : LinkBell::space;
}

/// False: there is no such bell.
bool parse_bell(std::uint64_t number, std::optional<Bell>& bell) {
  if (number > static_cast<std::uint64_t>(LinkBell::none)) return false;
  bell.reset();
  if (number != static_cast<std::uint64_t>(LinkBell::none)) bell = number == 0 ? Bell::data : Bell::space;
  return true;
}

constexpr LinkMessage message_of(LinkKind kind, std::uint32_t number, std::uint64_t a, std::uint64_t b = 0,
                                 std::uint64_t c = 0) {
  return {static_cast<std::uint32_t>(kind), number, a, b, c};
}

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
  controls_.push_back(message_of(LinkKind::welcome, layout::kLinkVersion, registered_->key(), registered_->address(),
                                 sides_.segment.size()));
}

void Link::on_connected() {
  const std::lock_guard lock(mutex_);
  connected_ = true;
  if (opening_ != nullptr) opening_->notify();
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
  if (broken_ || (ends_at_ && *ends_at_ <= Clock::now())) finish(*service_);
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
  ends_at_ = Clock::now() + kEndTogether;
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

std::size_t Link::put(std::uint64_t offset, std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return 0;
  if (!room()) {
    wants_room_ = true;
    return 0;
  }
  const auto taken = source.first(std::min(source.size(), kMostQueued - queue_.bytes()));
  return accept_item({.to = offset, .source = taken}) ? taken.size() : 0;
}

bool Link::push(Item item) {
  const std::lock_guard lock(mutex_);
  return accept_item(std::move(item));
}

bool Link::has_room() {
  const std::lock_guard lock(mutex_);
  return room();
}

bool Link::accept_item(Item item) {
  if (is_gone()) return false;
  if (!item.into.empty()) ++reads_pushed_;
  queue_.push(std::move(item));
  send_what_waits();
  return true;
}

Result Link::flush(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = ++flush_number_;
  const std::uint64_t reads = reads_pushed_;
  if (!is_gone()) {
    flushes_.push_back({queue_.pushed(), number});
    send_what_waits();
  }
  const auto over = [&] { return is_gone() || (flushed_ >= number && reads_done_ >= reads); };
  if (!deadline) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_until(lock, *deadline, over)) {
    return Result::failure(ETIMEDOUT);
  }
  return flushed_ >= number && reads_done_ >= reads ? Result::moved(0) : Result::failure(ECONNRESET);
}

void Link::send_what_waits() {
  if (endpoint_ == nullptr || !connected_ || ends_at_) return;
  while (in_flight_ < Endpoint::kMostInFlight && send_next()) {
  }
}

/// Returns whether there may be more to send.
bool Link::send_next() {
  if (!controls_.empty()) {
    if (!posted(endpoint_->send(controls_.front()))) return false;
    controls_.pop_front();
    return true;
  }
  if (!peer_) return false;
  if (!flushes_.empty() && taken_ >= flushes_.front().pushed) {
    controls_.push_back(message_of(LinkKind::flush, 0, flushes_.front().number));
    flushes_.pop_front();
    return true;
  }
  const Item* item = queue_.next(in_flight_);
  return item != nullptr && send_item(*item);
}

bool Link::send_item(const Item& item) {
  if (defines_slot(item)) return true;
  const auto* region = static_cast<const RemotePlace*>(item.keep.get());
  const RemotePlace& base = region != nullptr ? *region : *peer_;
  const RemotePlace to{base.key, base.address + item.to};
  if (!item.into.empty()) {
    if (!posted(endpoint_->read(item.into, to))) return false;
  } else {
    std::optional<std::uint64_t> data;
    if (fits_slot(item)) {
      data = layout::slot_data(own_slots_.at({item.word->at, item.word->bell}), item.word->value);
    }
    if ((data || !item.source.empty()) &&
        !posted(endpoint_->write(item.source, item.source.empty() ? *peer_ : to, data))) {
      return false;
    }
    if (item.word && region != nullptr) {
      controls_.push_back(message_of(LinkKind::region_word, 0, item.word->at, item.word->value, region->key));
    } else if (item.word && !data) {
      const auto bell = static_cast<std::uint32_t>(bell_number(item.word->bell));
      controls_.push_back(message_of(LinkKind::word, bell, item.word->at, item.word->value));
    }
  }
  take_item();
  return true;
}

void Link::take_item() {
  taken_ = queue_.take().pushed;
  if (!wants_room_ || !room()) return;
  wants_room_ = false;
  bells_[index(Bell::space)].notify();
}

/// Whether the word can travel with a write.
bool Link::fits_slot(const Item& item) const {
  return item.word && item.keep == nullptr && endpoint_->carries_words() &&
         item.word->value <= layout::kMostSlotValue && own_slots_.contains({item.word->at, item.word->bell});
}

/// Tells the peer where a word lies before it is first sent. False: it knows, or has as many as there can be.
bool Link::defines_slot(const Item& item) {
  if (!item.word || item.keep != nullptr || !endpoint_->carries_words() || own_slots_.size() == layout::kSlots ||
      item.word->value > layout::kMostSlotValue) {
    return false;
  }
  const auto slot = static_cast<std::uint8_t>(own_slots_.size());
  if (!own_slots_.emplace(std::pair(item.word->at, item.word->bell), slot).second) return false;
  const auto bell = static_cast<std::uint64_t>(bell_number(item.word->bell));
  controls_.push_back(message_of(LinkKind::slot, slot, item.word->at, bell));
  return true;
}

bool Link::posted(Endpoint::Posted result) {
  if (result == Endpoint::Posted::yes) ++in_flight_;
  if (result == Endpoint::Posted::dead) fail_later();
  return result == Endpoint::Posted::yes;
}

/// The endpoint sends no more. Its news follow what it has received.
void Link::fail_later() {
  if (!ends_at_) ends_at_ = Clock::now() + kEndTogether;
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

void Link::on_word(std::uint64_t data) {
  const std::uint8_t number = layout::slot_of(data);
  if (number >= peer_slots_.size()) {
    break_off("a word for a place that was never named");
    return;
  }
  const Slot& slot = peer_slots_[number];
  store(sides_.segment.data() + slot.offset, layout::slot_value(data), slot.bell);
}

void Link::on_message(const LinkMessage& message) {
  std::optional<Bell> bell;
  switch (static_cast<LinkKind>(message.kind)) {
    case LinkKind::welcome:
      on_welcome(message);
      return;
    case LinkKind::slot:
      on_slot(message);
      return;
    case LinkKind::word:
      if (!is_word(message.a, sides_.segment.size()) || !parse_bell(message.number, bell)) break;
      store(sides_.segment.data() + message.a, message.b, bell);
      return;
    case LinkKind::region_word:
      on_region_word(message);
      return;
    case LinkKind::flush:
      controls_.push_back(message_of(LinkKind::flushed, 0, message.a));
      return;
    case LinkKind::flushed:
      if (message.a > flush_number_) break;
      flushed_ = std::max(flushed_, message.a);
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
  if (opening_ != nullptr) opening_->notify();
  changed_.notify_all();
}

void Link::on_slot(const LinkMessage& message) {
  Slot slot{.offset = message.a, .bell = {}};
  if (message.number != peer_slots_.size() || message.number >= layout::kSlots ||
      !is_word(message.a, sides_.segment.size()) || !parse_bell(message.b, slot.bell)) {
    break_off("a place outside the segment");
    return;
  }
  peer_slots_.push_back(slot);
}

void Link::on_region_word(const LinkMessage& message) {
  std::byte* const at = exposed_ ? exposed_->word_at(message.c, message.a) : nullptr;
  if (at == nullptr) {
    break_off("a word outside exposed memory");
    return;
  }
  store(at, message.b, {});
}

void Link::on_reach(const LinkMessage& message) {
  RemotePlace place;
  const int error = exposed_ ? exposed_->find({message.a, message.b}, message.c, place) : ENXIO;
  controls_.push_back(
      message_of(LinkKind::reached, message.number, place.key, place.address, static_cast<std::uint64_t>(error)));
}

void Link::on_reached(const LinkMessage& message) {
  const auto asked = reaches_.find(message.number);
  if (asked == reaches_.end()) return;  // it came too late
  const bool is_errno = message.c < 4096;
  asked->second = Answer{{message.a, message.b}, is_errno ? static_cast<int>(message.c) : EPROTO};
  changed_.notify_all();
}

std::shared_ptr<const RemotePlace> Link::reach(const memory::RemoteKey& key, std::size_t bytes, int& error) {
  std::unique_lock lock(mutex_);
  error = ENXIO;
  if (is_gone()) return nullptr;
  const std::uint32_t number = ++reach_number_;
  reaches_.emplace(number, std::nullopt);
  controls_.push_back(message_of(LinkKind::reach, number, key.place, key.kind, bytes));
  send_what_waits();
  changed_.wait_for(lock, kAnswerTimeout, [&] { return is_gone() || reaches_.at(number).has_value(); });
  const auto answer = reaches_.extract(number).mapped();
  if (answer) error = answer->error;
  return answer && error == 0 ? std::make_shared<const RemotePlace>(answer->place) : nullptr;
}

/// The peer's word, whole and behind what it put before.
void Link::store(std::byte* at, std::uint64_t value, std::optional<Bell> bell) {
  reinterpret_cast<wherry::layout::Word*>(at)->store(value, std::memory_order_release);  // SIGNAL
  if (!bell) return;
  arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
  const std::uint64_t epoch = epochs_[index(*bell)].load(std::memory_order_acquire);  // SLEEP
  std::uint64_t& rung = rung_[index(*bell)];
  if ((epoch & 1) == 0 || epoch == rung) return;
  rung = epoch;
  bells_[index(*bell)].notify();
}

void Link::break_off(const char* reason) {
  if (!std::exchange(broken_, true)) log::write(log::Level::error, std::string("ofi: a peer sent ") + reason);
}

bool Link::is_ended_by_peer() {
  const std::lock_guard lock(mutex_);
  return ended_by_peer_;
}

void Link::forget_opening() {
  const std::lock_guard lock(mutex_);
  opening_.reset();
}

bool Link::is_open() {
  const std::lock_guard lock(mutex_);
  return peer_.has_value() && connected_;
}

void Link::arm(Bell bell) {
  silence(bell);
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) | 1, std::memory_order_release);  // SLEEP
  arch::publish_then_look();  // SLEEP: pairs with the fence in store()
}

void Link::disarm(Bell bell) {
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) & ~std::uint64_t{1}, std::memory_order_release);  // SLEEP
}

bool Link::silence(Bell bell) {
  const bool rung = bells_[index(bell)].silence();
  // Death rings once and for all. `finish` says that it is gone before it rings.
  if (is_gone()) notify_self(bell);
  return rung;
}

Wake Link::wait(Bell bell, const Deadline& deadline) {
  for (;;) {
    if (is_gone()) return Wake::gone;
    if (silence(bell)) return is_gone() ? Wake::gone : Wake::rung;
    if (!bells_[index(bell)].await(deadline)) return Wake::timeout;
  }
}

}  // namespace wherry::fabric::ofi
