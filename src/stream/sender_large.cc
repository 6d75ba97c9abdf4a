// SPDX-License-Identifier: Apache-2.0
// Large blocking sends: split between both sides, or over the ring.
#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "stream/sender.hpp"

namespace wherry::stream {
namespace {

using statistics::bump;

/// Bytes sent through the ring ahead of an offer, to wake the receiver. Small, because they are copied twice.
constexpr std::size_t kFirstPiece = std::size_t{16} << 10;

/// Offer timeouts. 100 ms for a receiver that serves other streams first: 60 of them, 2 MiB each, take 25 ms. 20 ms
/// once the ring is drained, which proves that the receiver was running.
constexpr std::chrono::milliseconds kOfferTimeout{100};
constexpr std::chrono::milliseconds kOfferTimeoutOnceDrained{20};

}  // namespace

/// Consecutive buffers that go over the ring are sent as one run.
Result Sender::send_large(std::span<const iovec> buffers) {
  std::size_t total = 0;
  while (!buffers.empty()) {
    std::size_t count = 0;
    while (count < buffers.size() && !is_to_be_split(buffers[count])) ++count;
    const auto run = buffers.first(std::max<std::size_t>(count, 1));
    const Result result = send_run(run, count == 0);
    total += result.bytes;
    if (result.failed()) return Result::failure(result.error, total);
    buffers = buffers.subspan(run.size());
  }
  return Result::moved(total);
}

bool Sender::is_to_be_split(const iovec& buffer) const {
  return split_.wants(buffer.iov_len) && (!choice_ || choice_->way(buffer.iov_len) == SplitChoice::Way::split);
}

/// Sends consecutive buffers one way, and reports to the split choice how long the largest of them took.
Result Sender::send_run(std::span<const iovec> run, bool split) {
  using Way = SplitChoice::Way;
  const std::uint64_t began = monotonic_ns();
  const std::uint64_t split_before = counters_.bytes_sent_split.load(std::memory_order_relaxed);
  const Result result = split ? send_split(bytes_of(run[0])) : send_over_ring(run, {});
  const auto size = [](const iovec& buffer) { return buffer.iov_len; };
  const std::size_t largest = std::ranges::max(run, {}, size).iov_len;
  if (choice_ && split_.wants(largest)) {
    const std::uint64_t shared = counters_.bytes_sent_split.load(std::memory_order_relaxed) - split_before;
    const Way way = shared > largest / 2 ? Way::split : Way::ring;
    choice_->record_transfer(way, largest, static_cast<std::int64_t>(began), static_cast<std::int64_t>(monotonic_ns()));
  }
  return result;
}

/// Sends piece by piece over the ring until the next byte is one that the receiver has invited, or the receiver
/// accepts an offer.
Result Sender::send_split(std::span<const std::byte> bytes) {
  reserved_ = 0;
  bool may_offer = split_.may_offer();
  split_.wait_for_invitation(producer_.tail());
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto rest = bytes.subspan(sent);
    if (const int error = obstacle(); error != 0) return Result::failure(error, sent);
    auto result = over_invitation(rest);
    if (!result && may_offer && sent != 0) {
      may_offer = false;
      result = over_offer(rest);
      if (!result) continue;
    }
    if (!result) {
      const iovec piece{const_cast<std::byte*>(rest.data()), std::min(rest.size(), may_offer ? kFirstPiece : piece_)};
      std::size_t copied = 0;
      result = copy_and_publish(std::span(&piece, 1), copied);
      if (result->ok() && copied == 0) {
        result = wait_writable(1, {});
        result->bytes = 0;
      }
    }
    sent += result->bytes;
    if (result->failed()) return Result::failure(result->error, sent);
  }
  return Result::moved(sent);
}

std::optional<Result> Sender::over_invitation(std::span<const std::byte> bytes) {
  return account_split(split_.send(producer_.tail(), bytes));
}

/// Offers the rest and sleeps until it is accepted or the timeout ends. A receiver that split the last large message
/// will probably split this one, and the first piece has woken it; filling the ring meanwhile would cost a second copy.
/// If offers to this receiver expire, they are tried exponentially less often (SplitSender::may_offer).
std::optional<Result> Sender::over_offer(std::span<const std::byte> bytes) {
  if (!split_.wants_rest(bytes.size())) return {};
  const std::uint64_t tail = producer_.tail();
  split_.offer(tail, bytes);
  const auto start = SteadyClock::now();
  const auto empty = [&] { return producer_.space() == producer_.capacity(); };
  const auto ready = [&] { return split_.answered(tail) || obstacle() != 0; };
  for (bool read = empty(); !ready(); read = empty()) {
    const fabric::Deadline deadline = start + (read ? kOfferTimeoutOnceDrained : kOfferTimeout);
    if (has_passed(deadline)) break;
    const auto changed = [&] { return ready() || (!read && empty()); };
    if (!spin_.look(changed, deadline)) sleep_for_space(changed, deadline);
  }
  return account_split(split_.conclude(tail, bytes));
}

std::optional<Result> Sender::account_split(const std::optional<Result>& result) {
  if (!result) return {};
  descriptor_armed_ = false;
  if (polled_) (void)rearm_descriptor();
  if (result->bytes != 0) {
    bump(counters_.bytes_sent, result->bytes);
    bump(counters_.sends, 1);
    bump(counters_.bytes_sent_split, result->bytes);
  }
  return result;
}

}  // namespace wherry::stream
