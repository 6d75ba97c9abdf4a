// SPDX-License-Identifier: Apache-2.0
#include "stream/sender.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "arch/copy.hpp"
#include "base/clock.hpp"
#include "base/config.hpp"

namespace wherry::stream {
namespace {

using fabric::Bell;
using fabric::Wake;
using layout::StreamPage;
using statistics::bump;
using statistics::set;

/// Publishing in pieces lets the receiver copy out one piece while the next is copied in; a piece stays in the cache
/// between the two. 16 to 64 KiB measure best with rings of 256 KiB to 4 MiB. Small rings are divided into four pieces.
constexpr std::size_t kMaxPiece = std::size_t{64} << 10;

/// The same on put fabrics, where each piece is a message of the network. A piece is as large as the unread bytes, so a
/// lone message still moves in small pieces first. Over tcp, pieces of 512 KiB move 1.2 to 2 times as fast as of 64
/// KiB.
constexpr std::size_t kMaxPutPiece = std::size_t{512} << 10;

/// Interval of the liveness check in a sender that never sleeps. It is a system call, so it is not made per message.
constexpr std::int64_t kLookIntervalNs = 10'000'000;

/// Reading the clock costs a fifth of a small message, so in a dense flow it is read once per this many publications.
constexpr std::uint32_t kMostPublicationsPerClock = 16;

/// Returns the time of the last tick, at most a few milliseconds old. Takes a few nanoseconds.
std::int64_t coarse_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Sender::Sender(fabric::Connection& connection, std::size_t capacity, ConnectionState& connection_state,
               layout::StatisticsRecord& counters)
    : connection_(connection),
      own_page_(*reinterpret_cast<const StreamPage*>(connection.segment().data())),
      remote_(connection.map()),
      connection_state_(connection_state),
      counters_(counters),
      split_(connection, connection_state) {
  set_pieces(capacity);
  if (remote_ != nullptr && !config::is_set(config::Key::split)) choice_.emplace(capacity);
  if (remote_ != nullptr) {
    auto* page = reinterpret_cast<StreamPage*>(remote_);
    producer_ = ring::Producer({remote_ + layout::kStreamPageBytes, capacity}, &own_page_.head, &page->tail);
    first_lap_ = FirstLap({remote_ + layout::kStreamPageBytes, capacity});
  } else {
    staging_memory_ = connection.buffer(capacity);
    staging_ = staging_memory_.get();
    producer_ = ring::Producer({staging_, capacity}, &own_page_.head, nullptr);
  }
}

void Sender::set_pieces(std::size_t capacity) {
  piece_ = std::min(kMaxPiece, capacity / 4);
  largest_piece_ = remote_ != nullptr ? piece_ : std::min(kMaxPutPiece, capacity / 4);
}

int Sender::obstacle() {
  if (connection_state_.cancelled.load(std::memory_order_relaxed)) return ECANCELED;
  if (producer_.broken()) return EPROTO;
  // CLOSED acquire: pairs with the release in Receiver::close.
  if (finished_ || connection_state_.gone.load(std::memory_order_relaxed) ||
      own_page_.closed.load(std::memory_order_acquire) != 0)
    return EPIPE;
  return 0;
}

Result Sender::try_send(std::span<const iovec> buffers) {
  std::size_t wanted = 0;
  for (const auto& buffer : buffers) wanted += buffer.iov_len;
  if (polled_) silence_descriptor(wanted == 0);
  wanted_ = 1;
  std::size_t copied = 0;
  const Result result = copy_and_publish(buffers, copied);
  if (!result.failed()) {
    short_ = copied < wanted;
    if (polled_ && short_ && rearm_descriptor() && copied == 0) return try_send(buffers);
  }
  if (result.failed() || copied != 0 || (wanted == 0 && !polled_)) return result;
  // Also for an empty buffer: a death makes the descriptor readable for good, and this call must return the reason.
  look_for_death();
  if (const int error = obstacle(); error != 0) return Result::failure(error);
  return wanted == 0 ? Result::moved(0) : Result::blocked();
}

/// Moves as much as there is space for, at most about one ring: with a receiver as fast as this side the loop would
/// exceed the deadline of a long send. Never blocks.
Result Sender::copy_and_publish(std::span<const iovec> buffers, std::size_t& copied) {
  if (const int error = obstacle(); error != 0) return Result::failure(error, copied);
  reserved_ = 0;
  std::size_t unpublished = 0;
  bool taken = true;
  std::size_t piece = next_piece();
  for (const iovec& buffer : buffers) {
    auto rest = bytes_of(buffer);
    // A death noticed meanwhile stops the copying. Bytes published before count as sent.
    while (!rest.empty() && copied < producer_.capacity() && !connection_state_.gone.load(std::memory_order_relaxed)) {
      const std::size_t n = producer_.copy_in(rest.first(std::min(rest.size(), piece - unpublished)), unpublished);
      if (n == 0) break;
      rest = rest.subspan(n);
      unpublished += n;
      copied += n;
      if (unpublished == piece) {
        taken = publish(unpublished);
        unpublished = 0;
        piece = next_piece();
      }
    }
    if (!rest.empty()) break;
  }
  if (unpublished != 0) taken = publish(unpublished);
  if (producer_.broken()) return Result::failure(EPROTO, copied);
  return taken ? Result::moved(copied) : Result::failure(EPIPE, copied);
}

/// False: the fabric no longer takes puts. True even if the peer turns out to be dead afterwards: the bytes were sent.
bool Sender::publish(std::size_t bytes) {
  const std::uint64_t from = producer_.tail();
  bool rang = false;
  if (remote_ != nullptr) {
    producer_.commit(bytes);
    rang = connection_.announce(Bell::data);
  } else {
    producer_.commit(bytes);
    if (!put_range(from, bytes)) {
      connection_state_.gone.store(true, std::memory_order_release);  // GONE
      return false;
    }
  }
  bump(counters_.bytes_sent, bytes);
  bump(counters_.sends, 1);
  if (rang) bump(counters_.data_wakes, 1);
  set(counters_.send_fill, producer_.fill());
  watch_for_death();
  first_lap_.published(producer_.tail(), bytes);
  return true;
}

/// Put fabrics only: puts bytes, and the tail after them.
bool Sender::put_range(std::uint64_t from, std::size_t bytes) {
  const Regions regions = producer_.view().at(from, bytes);
  const auto place = static_cast<std::size_t>(regions.first.data() - staging_);
  return connection_.put_and_signal(layout::kStreamPageBytes + place, regions.first, layout::kStreamPageBytes,
                                    regions.second, offsetof(StreamPage, tail), from + bytes, Bell::data);
}

bool Sender::set_peers_word(std::size_t offset, std::uint64_t value) {
  if (remote_ == nullptr) return connection_.signal(offset, value, Bell::data);
  reinterpret_cast<layout::Word*>(remote_ + offset)->store(value, std::memory_order_release);  // FINISHED
  connection_.announce(Bell::data);
  return true;
}

/// Liveness check, at most every 10 ms. Busy senders detect death when they block on a full ring; this serves the
/// others. While the coarse clock does not move between two readings, messages are dense, and it is read less often.
void Sender::watch_for_death() {
  if (++publications_ < clock_each_) return;
  publications_ = 0;
  const std::int64_t now = coarse_ns();
  clock_each_ = now == seen_ns_ ? std::min(2 * clock_each_, kMostPublicationsPerClock) : 1;
  seen_ns_ = now;
  if (now < next_look_ns_) return;
  next_look_ns_ = now + kLookIntervalNs;
  look_for_death();
}

void Sender::look_for_death() {
  if (connection_state_.gone.load(std::memory_order_relaxed)) return;
  if (connection_.peer_gone()) connection_state_.gone.store(true, std::memory_order_release);  // GONE
}

/// Publishes once. Publishing the first 2 to 16 KiB early takes 6 % off the one-way time of 64 KiB messages. But it
/// takes a third off their rate where the two cores share no cache (AMD, family 26).
bool Sender::send_at_once(std::span<const std::byte> bytes) {
  if (remote_ == nullptr || bytes.empty() || bytes.size() > piece_ || obstacle() != 0) return false;
  if (producer_.copy_in(bytes) != bytes.size())
    return false;  // The copied bytes are not published, and will be overwritten.
  reserved_ = 0;
  return publish(bytes.size());
}

Result Sender::send(std::span<const iovec> buffers, fabric::Deadline deadline) {
  const auto large = [&](const iovec& buffer) { return split_.wants(buffer.iov_len); };
  if (!deadline && std::any_of(buffers.begin(), buffers.end(), large)) return send_large(buffers);
  return send_over_ring(buffers, deadline);
}

Result Sender::send_over_ring(std::span<const iovec> buffers, fabric::Deadline deadline) {
  // Everything that fits is published together: a header and its payload are one publication, and wake the receiver
  // once.
  std::size_t total = 0;
  const Result at_once = copy_and_publish(buffers, total);
  if (at_once.failed()) return at_once;
  std::size_t skipped = 0;
  for (const iovec& buffer : buffers) {
    const std::size_t sent = std::min(total - skipped, buffer.iov_len);
    skipped += sent;
    if (sent == buffer.iov_len) continue;
    const Result rest = send_rest(bytes_of(buffer).subspan(sent), deadline);
    total += rest.bytes;
    skipped += rest.bytes;
    if (rest.failed()) return Result::failure(rest.error, total);
  }
  return Result::moved(total);
}

/// Sends the bytes that found no space at once.
Result Sender::send_rest(std::span<const std::byte> bytes, fabric::Deadline deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    if (has_passed(deadline)) return Result::failure(ETIMEDOUT, sent);
    if (const Result space = wait_writable(1, deadline); !space.ok()) return Result::failure(space.error, sent);
    const auto rest = bytes.subspan(sent);
    const iovec buffer{const_cast<std::byte*>(rest.data()), rest.size()};
    std::size_t copied = 0;
    const Result result = copy_and_publish(std::span(&buffer, 1), copied);
    sent += copied;
    if (result.failed()) return Result::failure(result.error, sent);
  }
  return Result::moved(sent);
}

Regions Sender::reserve(std::size_t want) {
  const Regions regions = obstacle() != 0 ? Regions{} : producer_.reserve(want);
  reserved_ = regions.size();
  first_lap_.reserved(producer_.tail(), reserved_, want);
  wanted_ = 1;
  if (!polled_ || !regions.empty() || want == 0) return regions;
  return rearm_descriptor() && obstacle() == 0 ? reserve(want) : regions;
}

Result Sender::commit(std::size_t bytes) {
  if (bytes > reserved_) return Result::failure(EINVAL);
  reserved_ = 0;
  if (const int error = obstacle(); error != 0) return Result::failure(error);
  if (bytes == 0) return Result::moved(0);
  return publish(bytes) ? Result::moved(bytes) : Result::failure(EPIPE, bytes);
}

Result Sender::wait_writable(std::size_t bytes, fabric::Deadline deadline) {
  // Half the ring at most: the receiver may keep up to a quarter to itself (ring::Consumer::credit_due).
  const std::size_t wanted = std::clamp<std::size_t>(bytes, 1, producer_.capacity() / 2);
  const auto ready = [&] { return producer_.space() >= wanted || obstacle() != 0; };
  bool timed_out = false;
  while (true) {
    if (const int error = obstacle(); error != 0) return Result::failure(error);
    if (producer_.space() >= wanted) return Result::moved(producer_.space());
    if (timed_out) return Result::failure(ETIMEDOUT);
    if (look_for_space(ready, deadline)) continue;
    timed_out = sleep_for_space(ready, deadline) == Wake::timeout;
  }
}

Result Sender::try_writable(std::size_t bytes) {
  if (polled_) silence_descriptor(false);
  wanted_ = std::clamp<std::size_t>(bytes, 1, producer_.capacity() / 2);
  if (const int error = obstacle(); error != 0) return Result::failure(error);
  if (producer_.space() >= wanted_) return Result::moved(producer_.space());
  short_ = true;
  if (polled_ && rearm_descriptor()) return try_writable(bytes);
  look_for_death();
  const int error = obstacle();
  return error != 0 ? Result::failure(error) : Result::blocked();
}

Result Sender::finish() {
  if (finished_) return Result::moved(0);
  if (const int error = obstacle(); error != 0) return Result::failure(error);
  finished_ = true;
  // FINISHED release: after the last tail; pairs with the acquire in Receiver::state.
  if (!set_peers_word(offsetof(StreamPage, finished), producer_.tail() + 1)) return Result::failure(EPIPE);
  return Result::moved(0);
}

Result Sender::limit_unread(std::size_t bytes) {
  if (producer_.tail() != 0) return Result::failure(EINVAL);
  producer_.limit(std::max(bytes, ring::kMinCapacity));
  set_pieces(producer_.capacity());
  first_lap_.limit(producer_.capacity());
  return Result::moved(0);
}

}  // namespace wherry::stream
