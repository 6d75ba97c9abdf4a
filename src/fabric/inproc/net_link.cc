// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/net_link.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "fabric/inproc/net_memory.hpp"
#include "fabric/inproc/put_copy.hpp"

namespace wherry::fabric::inproc {
namespace {

constexpr std::size_t kLongestSleepUs = 300;
/// Maximum delay until a side learns of the other's death. Usually the short one, so that tests with many deaths end.
constexpr std::size_t kLatestNewsUs = 50'000, kLateNewsUs = 2'000;

std::byte* pointer(std::uint64_t address) { return std::bit_cast<std::byte*>(address); }

}  // namespace

bool NetLink::has_room(const Direction& direction) const {
  return direction.queue.bytes() < kMostQueued && direction.queue.size() < kMostItems;
}

bool NetLink::has_room(std::size_t side) {
  const std::lock_guard lock(mutex_);
  return has_room(from(side));
}

std::size_t NetLink::put(std::size_t side, std::uint64_t to, std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  Direction& direction = from(side);
  if (!has_room(direction)) {
    direction.wants_room = true;
    return 0;
  }
  const auto taken = source.first(std::min(source.size(), kMostQueued - direction.queue.bytes()));
  return accept(side, {.to = to, .source = taken}) ? taken.size() : 0;
}

bool NetLink::push(std::size_t side, Item item) {
  const std::lock_guard lock(mutex_);
  if (words_ == WordsTravel::with_payload || !item.word || item.source.empty()) return accept(side, std::move(item));
  const auto word = item.word;
  item.word.reset();
  return accept(side, std::move(item)) && accept(side, {.word = word});
}

bool NetLink::accept(std::size_t side, Item item) {
  const auto now = Clock::now();
  tick(now);
  if (gone_[side] || refuse_unregistered(side, item)) return false;
  from(side).queue.push(std::move(item));
  call_service_for(side, now);
  return true;
}

/// Breaks the connection if memory is not registered, as network hardware only accesses registered memory.
bool NetLink::refuse_unregistered(std::size_t side, const Item& item) {
  NetMemory& registered = NetMemory::instance();
  if (registered.covers(item.source) && registered.covers(item.into)) return false;
  log::write(log::Level::error,
             "inproc-net: a put or get of memory that is not registered; use Connection::buffer, the own segment or "
             "exposed memory");
  for (const std::size_t end : {side, 1 - side}) declare_gone(end);
  return true;
}

Result NetLink::flush(std::size_t side, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  Direction& direction = from(side);
  const std::uint64_t pushed = direction.queue.pushed();
  (void)drive(side, Clock::now());
  const auto over = [&] { return gone_[side] || direction.acknowledged >= pushed; };
  if (!deadline) {
    progress_.wait(lock, over);
  } else if (!progress_.wait_until(lock, *deadline, over)) {
    return Result::failure(ETIMEDOUT);
  }
  return gone_[side] ? Result::failure(ECONNRESET) : Result::moved(0);
}

void NetLink::progress(std::size_t side, Bell bell) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  parks_[side].drive(bell, now);
  (void)drive(side, now);
}

void NetLink::end_progress(std::size_t side, Bell bell) {
  if (!parks_[side].end(bell)) return;
  const std::lock_guard lock(mutex_);
  if (has_work(side)) call_service_for(side, Clock::now());
}

bool NetLink::is_gone(std::size_t side) {
  const std::lock_guard lock(mutex_);
  tick(Clock::now());
  return gone_[side];
}

void NetLink::leave(std::size_t side) noexcept {
  const std::lock_guard lock(mutex_);
  left_[side] = true;
  gone_[side] = true;
  for (Direction& direction : directions_) {
    direction.queue.clear();
    direction.wire.clear();
  }
  gone_at_[side].reset();
  progress_.notify_all();
  if (left_[1 - side]) return;
  const auto now = Clock::now();
  gone_at_[1 - side] = now + std::chrono::microseconds(below(below(8) == 0 ? kLatestNewsUs : kLateNewsUs));
  call_service(now);
}

void NetLink::cut(std::chrono::nanoseconds limit) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  cut_ = true;
  for (const std::size_t side : {0U, 1U}) {
    if (!left_[side]) gone_at_[side] = now + limit;
  }
  call_service(now);
}

void NetLink::heal() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  tick(now);
  cut_ = false;
  service_ = Service::idle;  // it sleeps until the limit of cut()
  for (const std::size_t side : {0U, 1U}) {
    if (!left_[1 - side]) gone_at_[side].reset();
  }
  call_service(now);
}

void NetLink::tick(Clock::time_point now) {
  for (const std::size_t side : {0U, 1U}) {
    if (gone_at_[side] && *gone_at_[side] <= now) declare_gone(side);
  }
}

/// Makes the other side gone for this one. Everything delivered before is visible; nothing follows.
void NetLink::declare_gone(std::size_t side) {
  gone_at_[side].reset();
  if (std::exchange(gone_[side], true)) return;
  from(side).queue.clear();
  from(side).wire.clear();
  from(1 - side).wire.clear();
  for (const Bell bell : kBells) sides_[side]->bells[index(bell)].notify();
  progress_.notify_all();
}

/// The engine of one side: delivers what has arrived, handles acknowledgements, sends what is queued.
bool NetLink::advance(std::size_t side, Clock::time_point now) {
  tick(now);
  if (cut_ || gone_[side]) return false;
  const bool delivered = deliver(side, now);
  const bool acknowledged = acknowledge(side);
  const bool sent = transmit(side, now);
  return delivered || acknowledged || sent;
}

bool NetLink::deliver(std::size_t side, Clock::time_point now) {
  std::vector<std::pair<Message*, std::size_t>> due;
  for (Message& message : from(1 - side).wire) {
    if (message.not_before > now) continue;
    for (std::size_t i = 0; i < message.pieces.size(); ++i) due.emplace_back(&message, i);
  }
  std::shuffle(due.begin(), due.end(), random_);
  // Delivers only a part, so that a look in between finds the memory half-written.
  due.resize(due.empty() ? 0 : 1 + below(due.size()));
  for (const auto& [message, which] : due) deliver_piece(*message, which);
  for (Message& message : from(1 - side).wire) {
    std::erase_if(message.pieces, [](const Piece& piece) { return piece.bytes == 0; });
  }
  return retire(side) || !due.empty();
}

void NetLink::deliver_piece(Message& message, std::size_t which) {
  Piece& piece = message.pieces[which];
  const Item& item = message.item;
  if (item.into.empty()) {
    copy_put(pointer(item.to) + piece.from, message.payload.data() + piece.from, piece.bytes);
  } else {
    std::memcpy(item.into.data() + piece.from, pointer(item.to) + piece.from, piece.bytes);
  }
  piece.bytes = 0;
}

/// Removes messages that are delivered, in order, and stores their words. Delivered messages are acknowledged later.
bool NetLink::retire(std::size_t side) {
  Direction& direction = from(1 - side);
  bool any = false;
  for (; !direction.wire.empty() && direction.wire.front().pieces.empty(); any = true) {
    const Message& message = direction.wire.front();
    if (message.item.word) store(side, *message.item.word);
    direction.delivered = message.item.pushed;
    direction.wire_bytes -= message.payload.size();
    ++direction.unacknowledged;
    direction.wire.pop_front();
  }
  return any;
}

void NetLink::store(std::size_t side, const SendQueue::Word& word) {
  reinterpret_cast<layout::Word*>(pointer(word.at))->store(word.value, std::memory_order_release);  // SIGNAL
  if (!word.bell) return;
  arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
  const auto bell = index(*word.bell);
  // The epoch is in this side's own page: over a network, a sleeper cannot write to the other side's memory.
  const std::uint64_t epoch = sides_[side]->page.waiters[bell].epoch.load(std::memory_order_acquire);  // SLEEP
  std::uint64_t& rung = from(1 - side).rung[bell];
  if ((epoch & 1) == 0 || epoch == rung) return;
  rung = epoch;
  sides_[side]->bells[bell].notify();
}

bool NetLink::acknowledge(std::size_t side) {
  Direction& direction = from(side);
  if (direction.acknowledged == direction.delivered && direction.unacknowledged == 0) return false;
  direction.acknowledged = direction.delivered;
  direction.unacknowledged = 0;
  progress_.notify_all();
  return true;
}

bool NetLink::transmit(std::size_t side, Clock::time_point now) {
  Direction& direction = from(side);
  bool any = false;
  for (; direction.wire_bytes < kMostOnWire; any = true) {
    if (direction.queue.next(direction.wire.size() + direction.unacknowledged) == nullptr) break;
    Message message{.item = direction.queue.take(), .payload = {}, .pieces = {}, .not_before = now};
    message.payload.assign(message.item.source.begin(), message.item.source.end());
    message.item.source = {};
    if (below(256) == 0) message.not_before += std::chrono::microseconds(below(kLongestSleepUs));
    cut_into_pieces(message);
    direction.wire_bytes += message.payload.size();
    direction.wire.push_back(std::move(message));
  }
  if (direction.wants_room && has_room(direction)) {
    direction.wants_room = false;
    sides_[side]->bells[index(Bell::space)].notify();
  }
  return any;
}

/// Cuts a message into pieces; up to eight bytes into two, so that a word in a put is torn.
void NetLink::cut_into_pieces(Message& message) {
  const std::size_t bytes = message.item.into.empty() ? message.payload.size() : message.item.into.size();
  const std::size_t pieces = bytes <= 8 ? 2 : 1 + below(kMostPieces);
  std::size_t at = 0;
  for (std::size_t left = pieces; left > 1 && bytes - at > 1; --left) {
    const std::size_t part = bytes <= 8 ? bytes / 2 : 1 + below(bytes - at - 1);
    message.pieces.push_back({at, part});
    at += part;
  }
  if (at < bytes) message.pieces.push_back({at, bytes - at});
}

/// Runs the engine of one side on the caller's thread. If it moved something, the other side has work.
bool NetLink::drive(std::size_t side, Clock::time_point now) {
  const bool moved = advance(side, now);
  for (const std::size_t end : {side, 1 - side}) {
    if (moved && has_work(end)) call_service_for(end, now);
  }
  return moved;
}

/// Whether the engine of this side has something to do, now or soon.
bool NetLink::has_work(std::size_t side) {
  const Direction& sends = from(side);
  if (cut_ || gone_[side]) return false;
  return !from(1 - side).wire.empty() || !sends.queue.empty() || sends.wants_room || sends.unacknowledged != 0 ||
         sends.acknowledged != sends.delivered;
}

void NetLink::call_service_for(std::size_t side, Clock::time_point now) {
  if (service_ == Service::called) return;
  const auto parked = parks_[side].defer(now);
  if (!parked) return call_service(now);
  if (service_ == Service::idle) set_service(Service::parked, *parked);
}

void NetLink::call_service(Clock::time_point now) {
  if (service_ == Service::called) return;
  set_service(Service::called, below(4) == 0 ? now + std::chrono::microseconds(below(kLongestSleepUs)) : now);
}

void NetLink::set_service(Service service, Clock::time_point at) {
  service_ = service;
  service_at_ = at;
  Wire::of_networks().take(shared_from_this());
}

std::optional<Carried::Clock::time_point> NetLink::run() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (service_ != Service::idle && now < service_at_) return service_at_;
  tick(now);
  bool moved = false;
  std::array<std::optional<Clock::time_point>, 2> parked;
  for (const std::size_t side : {0U, 1U}) {
    if (has_work(side)) parked[side] = parks_[side].defer(now);
    if (!parked[side] && advance(side, now)) moved = true;
  }
  const auto next = moved ? now : next_run(parked, now);
  service_ = !next ? Service::idle : next == parked[0] || next == parked[1] ? Service::parked : Service::called;
  service_at_ = next.value_or(Clock::time_point{});
  return next;
}

/// Returns when the service must run next; empty: there is no work.
/// @param parked  [side]: until when a waiter drives it
std::optional<Carried::Clock::time_point> NetLink::next_run(
    const std::array<std::optional<Clock::time_point>, 2>& parked, Clock::time_point now) const {
  std::optional<Clock::time_point> next;
  const auto at_most = [&next](Clock::time_point at) { next = next ? std::min(*next, at) : at; };
  for (const std::size_t side : {0U, 1U}) {
    if (gone_at_[side]) at_most(*gone_at_[side]);
    if (parked[side]) at_most(*parked[side]);
    if (cut_ || parked[side]) continue;
    for (const Message& message : directions_[1 - side].wire) at_most(std::max(message.not_before, now));
  }
  return next;
}

}  // namespace wherry::fabric::inproc
