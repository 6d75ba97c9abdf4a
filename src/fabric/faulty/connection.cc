// SPDX-License-Identifier: Apache-2.0
#include "fabric/faulty/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "fabric/check.hpp"

namespace wherry::fabric::faulty {

namespace {

constexpr std::size_t kMostHeld = 16;

}  // namespace

/// Exposed memory of the peer on a faulty connection. Its puts are held back together with those to the segment, and
/// the death of the connection applies to it too.
class FaultyRegion final : public memory::RemoteRegion {
 public:
  FaultyRegion(FaultyConnection& connection, std::shared_ptr<memory::RemoteRegion> inner)
      : connection_(connection), inner_(std::move(inner)) {}

  [[nodiscard]] std::byte* map() const override { return connection_.plan_.hide_map != 0 ? nullptr : inner_->map(); }
  bool has_room() override { return inner_->has_room(); }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    const std::lock_guard lock(connection_.mutex_);
    if (!connection_.lives() || source.empty()) return false;
    if (!connection_.puts_.percent(connection_.plan_.reorder)) return inner_->put(offset, source);
    return connection_.hold_back(inner_, offset, source);
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    return connection_.lives() && inner_->get(destination, offset);
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    const std::lock_guard lock(connection_.mutex_);
    return connection_.lives() && connection_.release_all() && inner_->signal(offset, value);
  }
  int map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where) override {
    return connection_.plan_.hide_map != 0 ? ENOTSUP : inner_->map_at(offset, bytes, protection, where);
  }

 private:
  FaultyConnection& connection_;
  const std::shared_ptr<memory::RemoteRegion> inner_;
};

class FaultyExposure final : public Exposure {
 public:
  FaultyExposure(FaultyConnection& connection, Exposure& inner) : connection_(connection), inner_(inner) {}

  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override { return inner_.expose(memory); }
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) override {
    auto reached = inner_.reach(key, bytes, error);
    return reached == nullptr ? nullptr : std::make_shared<FaultyRegion>(connection_, std::move(reached));
  }

 private:
  FaultyConnection& connection_;
  Exposure& inner_;
};

/// Private memory of the peer. Accesses may stop short, and fail once the connection is dead.
class FaultyPrivateMemory final : public PrivateMemory {
 public:
  FaultyPrivateMemory(FaultyConnection& connection, PrivateMemory& inner) : connection_(connection), inner_(inner) {}

  bool reachable() override { return connection_.lives() && inner_.reachable(); }
  bool recognise() override { return connection_.lives() && inner_.recognise(); }
  [[nodiscard]] std::size_t read(std::span<std::byte> destination, std::uint64_t address) override {
    return inner_.read(destination.first(connection_.allowed(destination.size(), connection_.reads_)), address);
  }
  [[nodiscard]] std::size_t write(std::uint64_t address, std::span<const std::byte> source) override {
    return inner_.write(address, source.first(connection_.allowed(source.size(), connection_.writes_)));
  }

 private:
  FaultyConnection& connection_;
  PrivateMemory& inner_;
};

FaultyConnection::FaultyConnection(std::unique_ptr<Connection> inner, const FaultPlan& plan)
    : inner_(std::move(inner)),
      plan_(plan),
      peer_(plan.hide_peer == 0 ? inner_->peer()
                                : Peer{.address = inner_->peer().address, .host = inner_->peer().host}),
      puts_(plan.seed),
      wakes_{Dice(plan.seed + 1), Dice(plan.seed + 2)},
      arms_{Dice(plan.seed + 3), Dice(plan.seed + 4)},
      reads_(plan.seed + 5),
      writes_(plan.seed + 6) {
  for (const Bell bell : kBells) notification_states_[index(bell)] = notification_state_of(*inner_, bell);
  if (Exposure* const exposed = inner_->exposure(); exposed != nullptr) {
    exposure_ = std::make_unique<FaultyExposure>(*this, *exposed);
  }
  PrivateMemory* const reached = plan_.hide_map == 0 ? inner_->private_memory() : nullptr;
  if (reached != nullptr) private_memory_ = std::make_unique<FaultyPrivateMemory>(*this, *reached);
}

FaultyConnection::~FaultyConnection() = default;

bool FaultyConnection::lives() {
  if (plan_.die != 0 && calls_.fetch_add(1, std::memory_order_relaxed) + 1 >= plan_.die && !dead_.exchange(true)) {
    for (const Bell bell : kBells) inner_->notify_self(bell);
    // An event descriptor that is a socket shows only the socket's end. Others show the rings of the loop above.
    for (const auto& descriptor : event_descriptors_) (void)::shutdown(descriptor, SHUT_RDWR);
  }
  return !dead_;
}

int FaultyConnection::event_descriptor(Bell bell) {
  const int descriptor = inner_->event_descriptor(bell);
  event_descriptors_[index(bell)] = descriptor;
  return descriptor;
}

void FaultyConnection::delay(Dice& dice) const {
  if (plan_.delay != 0) std::this_thread::sleep_for(std::chrono::microseconds(dice.below(plan_.delay + 1)));
}

std::size_t FaultyConnection::put(std::uint64_t offset, std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  if (!lives() || source.empty() || !in_range(offset, source.size(), remote_bytes()) || inner_->peer_gone()) return 0;
  if (puts_.percent(plan_.shorten)) source = source.first(1 + puts_.below(source.size()));
  if (!puts_.percent(plan_.reorder)) return inner_->put(offset, source);
  return hold_back(nullptr, offset, source) ? source.size() : 0;
}

bool FaultyConnection::hold_back(std::shared_ptr<memory::RemoteRegion> reached, std::uint64_t offset,
                                 std::span<const std::byte> source) {
  hold(std::move(reached), offset, source);
  while (held_.size() > kMostHeld) {
    if (!release(puts_.below(held_.size()))) return false;
  }
  return true;
}

void FaultyConnection::hold(std::shared_ptr<memory::RemoteRegion> reached, std::uint64_t offset,
                            std::span<const std::byte> source) {
  const std::size_t cut = puts_.below(source.size());
  if (cut != 0) held_.push_back({reached, offset, source.first(cut)});
  held_.push_back({std::move(reached), offset + cut, source.subspan(cut)});
}

bool FaultyConnection::release(std::size_t which) {
  std::swap(held_[which], held_.back());
  auto [reached, offset, source] = std::move(held_.back());
  held_.pop_back();
  return reached != nullptr ? reached->put(offset, source) : put_whole(offset, source);
}

/// Puts everything. Waits for a full queue by polling, because the bell belongs to the sending thread.
bool FaultyConnection::put_whole(std::uint64_t offset, std::span<const std::byte> source) {
  while (!source.empty()) {
    const std::size_t taken = inner_->put(offset, source);
    if (taken == 0) {
      if (inner_->peer_gone()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    offset += taken;
    source = source.subspan(taken);
  }
  return true;
}

/// Puts held back are sent in pieces, in any order, before the word; the wrapped fabric then sends the word alone.
bool FaultyConnection::put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                                      std::uint64_t value, Bell bell) {
  if (!in_range(offset, source.size(), remote_bytes()) || !is_word(word, remote_bytes())) return false;
  bool whole = inner_->map() == nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!lives() || inner_->peer_gone()) return false;
    whole = whole && !puts_.percent(plan_.reorder);
    if (!whole && !source.empty()) hold(nullptr, offset, source);
    if (whole && !release_all()) return false;
  }
  if (!whole) return signal(word, value, bell);
  delay(wakes_[index(bell)]);
  return inner_->put_and_signal(offset, source, word, value, bell);
}

bool FaultyConnection::release_all() {
  bool done = true;
  while (done && !held_.empty()) done = release(puts_.below(held_.size()));
  return done;
}

bool FaultyConnection::get(std::span<std::byte> destination, std::uint64_t offset) {
  return lives() && inner_->get(destination, offset);
}

std::size_t FaultyConnection::allowed(std::size_t bytes, Dice& dice) {
  if (!lives()) return 0;
  return dice.percent(plan_.deny) ? static_cast<std::size_t>(dice.below(bytes)) : bytes;
}

bool FaultyConnection::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!lives() || !is_word(offset, remote_bytes())) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!release_all()) return false;
  }
  if (inner_->map() != nullptr) return store_and_announce(offset, value, bell);
  delay(wakes_[index(bell)]);
  return inner_->signal(offset, value, bell);
}

// Announces with the states of this object. If signals used the states of the wrapped connection, and announcements
// those of this object, one sleep would be rung twice.
bool FaultyConnection::store_and_announce(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (inner_->peer_gone()) return false;
  reinterpret_cast<layout::Word*>(inner_->map() + offset)->store(value, std::memory_order_release);  // SIGNAL
  announce(bell);
  return true;
}

Result FaultyConnection::flush(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  const bool released = lives() && release_all();
  // Even if that failed: the memory of earlier puts may be read until this returns.
  const Result flushed = inner_->flush(deadline);
  if (!released && flushed.error != ETIMEDOUT) return Result::failure(ECONNRESET);
  return plan_.unacknowledged != 0 && flushed.ok() ? await_death(deadline) : flushed;
}

/// Returns the result of a flush to which no acknowledgement arrives.
Result FaultyConnection::await_death(const Deadline& deadline) {
  while (!inner_->peer_gone()) {
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return Result::failure(ETIMEDOUT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Result::failure(ECONNRESET);
}

bool FaultyConnection::notify(Bell bell) {
  if (!lives()) return true;
  delay(wakes_[index(bell)]);
  return notify_through(*inner_, bell);
}

void FaultyConnection::arm(Bell bell) {
  inner_->arm(bell);
  if (!lives() || arms_[index(bell)].percent(plan_.spurious)) inner_->notify_self(bell);
}

bool FaultyConnection::silence(Bell bell) {
  const bool rung = inner_->silence(bell);
  if (dead_) inner_->notify_self(bell);  // the descriptor of a dead connection stays readable
  return rung;
}

Wake FaultyConnection::wait(Bell bell, Deadline deadline) {
  if (!lives()) return Wake::gone;
  const Wake wake = inner_->wait(bell, deadline);
  if (!dead_) return wake;
  inner_->notify_self(bell);
  return Wake::gone;
}

bool FaultyConnection::peer_gone() { return !lives() || inner_->peer_gone(); }

}  // namespace wherry::fabric::faulty
