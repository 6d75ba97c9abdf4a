// SPDX-License-Identifier: Apache-2.0
#include "stream/receiver.hpp"

#include <algorithm>
#include <cerrno>

namespace wherry::stream {
namespace {

using fabric::Bell;
using fabric::Wake;
using layout::StreamPage;
using statistics::bump;
using statistics::set;

/// Interval of the liveness check in a receiver that polls an empty ring and never sleeps.
constexpr std::chrono::milliseconds kLookInterval{1};

std::size_t wanted_in(std::span<const iovec> buffers) {
  std::size_t wanted = 0;
  for (const iovec& buffer : buffers) wanted += buffer.iov_len;
  return wanted;
}

layout::Word* peers_head(std::byte* remote) {
  return remote == nullptr ? nullptr : &reinterpret_cast<StreamPage*>(remote)->head;
}

}  // namespace

Receiver::Receiver(fabric::Connection& connection, std::size_t capacity, ConnectionState& connection_state,
                   layout::StatisticsRecord& counters)
    : connection_(connection),
      own_page_(*reinterpret_cast<const StreamPage*>(connection.segment().data())),
      remote_(connection.map()),
      consumer_({connection.segment().data() + layout::kStreamPageBytes, capacity}, &own_page_.tail,
                peers_head(remote_)),
      connection_state_(connection_state),
      counters_(counters),
      split_(connection, connection_state) {}

Result Receiver::state() {
  if (connection_state_.cancelled.load(std::memory_order_relaxed)) return Result::failure(ECANCELED);
  // The sender stores to the line of `finished` with every message, so it is not read while bytes are known.
  if (const std::size_t known = consumer_.known_fill(); known != 0) return Result::moved(known);
  // Bytes published before a death or the end are delivered first, so both words are loaded before the tail.
  const bool gone = connection_state_.gone.load(std::memory_order_acquire);  // GONE
  // FINISHED acquire: pairs with the release in Sender::finish; the last tail is visible once it is set.
  const std::uint64_t finished = own_page_.finished.load(std::memory_order_acquire);
  const std::size_t waiting = consumer_.fill();
  if (consumer_.broken()) return Result::failure(EPROTO);
  if (waiting != 0) return Result::moved(waiting);
  if (finished != 0) return finished - 1 == consumer_.head() ? Result::at_end() : Result::failure(EPROTO);
  return gone ? Result::failure(ECONNRESET) : Result::blocked();
}

Result Receiver::try_receive(std::span<const iovec> buffers) {
  const Result result = copy_out(buffers);
  if (!result.would_block()) return result;
  (void)try_readable();
  return copy_out(buffers);
}

Result Receiver::try_readable() {
  const Result now = state();
  // A watcher returns credit before it sleeps, and is told of a death by the bell.
  if (!now.would_block() || watcher_ != nullptr) return now;
  return_credit();
  if (polled_) {
    rearm_descriptor();
    look_when_armed();
  } else {
    look_for_death(false);
  }
  return state();
}

/// Moves the bytes that have arrived. Never blocks.
Result Receiver::copy_out(std::span<const iovec> buffers) {
  const Result now = state();
  if (now.would_block() && wanted_in(buffers) == 0) return Result::moved(0);
  if (!now.ok()) return now;
  std::size_t moved = 0;
  for (const iovec& buffer : buffers) {
    const std::size_t n = consumer_.copy_out({static_cast<std::byte*>(buffer.iov_base), buffer.iov_len});
    moved += n;
    if (n != buffer.iov_len) break;
  }
  account(moved);
  return Result::moved(moved);
}

void Receiver::account(std::size_t bytes) {
  shown_ = 0;
  if (bytes == 0) return;
  bump(counters_.bytes_received, bytes);
  bump(counters_.receives, 1);
  set(counters_.receive_fill, consumer_.known_fill());
  if (consumer_.credit_due()) return_credit();
}

void Receiver::return_credit() {
  if (!consumer_.credit_owed()) return;
  const std::uint64_t head = consumer_.return_credit();
  if (remote_ == nullptr) {
    // The result is ignored: a dead peer needs no credit. Its death is noticed while waiting for bytes, after
    // everything it published was delivered.
    connection_.signal(offsetof(StreamPage, head), head, Bell::space);
  } else if (connection_.announce(Bell::space)) {
    bump(counters_.space_wakes, 1);
  }
}

bool Receiver::receive_at_once(std::span<std::byte> buffer) {
  if (buffer.empty() || buffer.size() > consumer_.known_fill() || cancelled()) return false;
  consumer_.copy_out(buffer);
  account(buffer.size());
  return true;
}

Result Receiver::receive(std::span<const iovec> buffers, fabric::Deadline deadline) {
  if (!deadline && buffers.size() == 1 && split_.wants(buffers[0].iov_len)) {
    return receive_split({static_cast<std::byte*>(buffers[0].iov_base), buffers[0].iov_len}, Need::something);
  }
  const bool fresh = consumer_.known_fill() == 0;
  if (fresh) coalescing_.before_look();
  bool soon = true;
  while (true) {
    const Result result = copy_out(buffers);
    if (!result.would_block()) {
      if (fresh) coalescing_.found(soon ? result.bytes + consumer_.known_fill() : 0);
      return result;
    }
    const Result readable = wait_readable(deadline);
    if (!readable.ok()) return {0, readable.status, readable.error};
    soon = spin_.came_soon();
  }
}

Result Receiver::receive_all(std::span<std::byte> buffer, fabric::Deadline deadline) {
  if (!deadline && split_.wants(buffer.size())) return receive_split(buffer, Need::all);
  std::size_t moved = 0;
  while (moved < buffer.size()) {
    const auto rest = buffer.subspan(moved);
    const iovec vector{rest.data(), rest.size()};
    const Result result = receive(std::span(&vector, 1), deadline);
    if (!result.ok()) return {moved, result.status, result.error};
    moved += result.bytes;
    if (moved < buffer.size() && has_passed(deadline)) return Result::failure(ETIMEDOUT, moved);
  }
  return Result::moved(moved);
}

/// Receives into a buffer by invitation or by the sender's offer. Bytes in the ring come first.
Result Receiver::receive_split(std::span<std::byte> buffer, Need need) {
  std::size_t moved = 0;
  while (moved < buffer.size()) {
    const auto rest = buffer.subspan(moved);
    split_.invite(consumer_.head(), rest);
    const bool agreed = split_.agreed();
    const iovec vector{rest.data(), rest.size()};
    Result result = copy_out(std::span(&vector, 1));
    if (result.would_block() && agreed) result = take_split(rest);
    if (result.would_block()) {
      result = wait_readable({});
      result.bytes = 0;
    }
    moved += result.bytes;
    if (!result.ok()) {
      end_split(result);
      // A partial receive returns its bytes; the error is returned by the next call.
      if (moved != 0 && need == Need::something) break;
      return {moved, result.status, result.error};
    }
    if (moved != 0 && need == Need::something && split_.withdraw()) break;
  }
  if (split_.withdraw()) return Result::moved(moved);
  const Result broken = Result::failure(EPROTO, moved);  // The sender accepted an invitation for a full buffer.
  end_split(broken);
  return broken;
}

/// Ends the invitation when a call fails. If the sender has accepted it already, waits for the sender to finish.
void Receiver::end_split(const Result& result) {
  if (result.error == EPROTO) consumer_.declare_broken();
  if (!split_.withdraw()) split_.abandon();
  bell_used();
}

/// Called with an empty ring that was looked at after the offer was seen. So the offer's position must be the ring's
/// end.
Result Receiver::take_split(std::span<std::byte> buffer) {
  const Result result = split_.take(consumer_.head(), buffer);
  bell_used();
  if (result.ok() && result.bytes != 0) {
    bump(counters_.bytes_received, result.bytes);
    bump(counters_.receives, 1);
    bump(counters_.bytes_received_split, result.bytes);
  }
  return result;
}

ConstRegions Receiver::peek(std::size_t want) {
  Result now = state();
  if (now.would_block() && watcher_ == nullptr) {
    return_credit();
    if (polled_) {
      rearm_descriptor();
      now = state();
    }
  }
  const ConstRegions regions = now.ok() ? consumer_.peek(want) : ConstRegions{};
  shown_ = regions.size();
  return regions;
}

Result Receiver::consume(std::size_t bytes) {
  if (bytes > shown_) return Result::failure(EINVAL);
  const std::size_t left = shown_ - bytes;
  consumer_.consume(bytes);
  account(bytes);
  shown_ = left;
  return Result::moved(bytes);
}

Result Receiver::wait_readable(fabric::Deadline deadline) {
  const auto ready = [&] { return !state().would_block() || split_.agreed(); };
  bool timed_out = false;
  while (true) {
    const Result now = state();
    if (!now.would_block()) return now;
    if (split_.agreed()) return Result::moved(0);
    if (timed_out) return Result::failure(ETIMEDOUT);
    if (look_for_bytes(ready, deadline)) continue;
    // Credit is returned before a sleep, so that a sender does not wait for space from a sleeping receiver. While this
    // side polls it owes less than a quarter of an empty ring, for which no sender waits; and `head` lies in a line
    // that the sender reads often.
    return_credit();
    const Wake wake = sleep_unless(connection_, Bell::data, deadline, ready, [&] {
      bump(counters_.receive_sleeps, 1);
      set(counters_.asleep_receiving, 1);
    });
    set(counters_.asleep_receiving, 0);
    spin_.learn(connection_, Bell::data);
    if (wake == Wake::gone) connection_state_.gone.store(true, std::memory_order_release);  // GONE
    timed_out = wake == Wake::timeout;
    bell_used();
  }
}

Result Receiver::wait_for_more(fabric::Deadline deadline) {
  coalescing_.before_look();
  Result now = state();
  const bool at_once = !now.would_block();
  if (!at_once) now = wait_readable(deadline);
  coalescing_.found(at_once || spin_.came_soon() ? consumer_.known_fill() : 0);
  return now;
}

/// Arms the bell again for the watcher or the descriptor: a blocking call may have slept on it and used up its ring.
void Receiver::bell_used() {
  if (watcher_ != nullptr) watcher_->bell_used();
  if (polled_) rearm_descriptor();
}

/// Tells first what was read, so that the peer's close knows it even if this side is gone by then.
void Receiver::close() {
  return_credit();
  if (remote_ == nullptr) {
    connection_.signal(offsetof(StreamPage, closed), 1, Bell::space);
    return;
  }
  // CLOSED release: pairs with the acquire in Sender::obstacle.
  reinterpret_cast<StreamPage*>(remote_)->closed.store(1, std::memory_order_release);
  connection_.announce(Bell::space);
}

int Receiver::descriptor() {
  const int fd = connection_.descriptor(Bell::data);
  polled_ = true;
  rearm_descriptor();
  return fd;
}

int Receiver::event_descriptor() {
  const int fd = connection_.event_descriptor(Bell::data);
  polled_ = true;
  event_polled_ = true;
  rearm_descriptor();
  return fd;
}

/// Keeps the descriptor's rule: the bell is armed or ringing. Armed, the peer rings it when bytes come. If bytes came
/// before it was armed, this side rings it; for an event descriptor the attempt that armed it continues instead.
void Receiver::rearm_descriptor() {
  if (watcher_ != nullptr) return;
  connection_.arm(Bell::data);
  if (!event_polled_ && !state().would_block()) connection_.notify_self(Bell::data);
}

void Receiver::take_bell_back() {
  if (polled_) {
    rearm_descriptor();
  } else {
    connection_.disarm(Bell::data);
  }
}

bool Receiver::arm_bell() {
  return_credit();
  connection_.arm(Bell::data);
  if (state().would_block()) return true;
  connection_.disarm(Bell::data);
  return false;
}

void Receiver::on_bell() {
  connection_.silence(Bell::data);
  if (state().would_block()) look_for_death(true);
}

void Receiver::look_for_death(bool always) {
  if (connection_state_.gone.load(std::memory_order_relaxed)) return;
  if (!always) {
    const auto now = SteadyClock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
  }
  if (connection_.peer_gone()) connection_state_.gone.store(true, std::memory_order_release);  // GONE
}

/// A death makes the descriptor readable for good, so the attempt that follows must return the reason.
void Receiver::look_when_armed() {
  if (connection_state_.gone.load(std::memory_order_relaxed)) return;
  if (connection_.peer_gone_when_armed(Bell::data)) {
    connection_state_.gone.store(true, std::memory_order_release);  // GONE
  }
}

}  // namespace wherry::stream
