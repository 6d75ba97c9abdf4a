// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/put_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "fabric/inproc/put_copy.hpp"

namespace wherry::fabric::inproc {

PutQueue::PutQueue(Side& target, const layout::BellPage& page, std::uint64_t seed)
    : target_(target), page_(page), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

bool PutQueue::wait_for_room(std::unique_lock<std::mutex>& lock) {
  progress_.wait(lock, [this] { return dead_ || (bytes_ < kMaxBytes && steps_.size() + kMaxPieces <= kMaxSteps); });
  return !dead_;
}

std::size_t PutQueue::copy(std::byte* to, std::span<const std::byte> from) {
  std::unique_lock lock(mutex_);
  if (!wait_for_room(lock)) return 0;
  const auto taken = from.first(std::min(from.size(), kMaxBytes - bytes_));
  queue_pieces(to, taken);
  hand_to_wire();
  return taken.size();
}

void PutQueue::queue_pieces(std::byte* to, std::span<const std::byte> from) {
  for (std::size_t left = 1 + below(kMaxPieces); !from.empty(); --left) {
    const std::size_t bytes = left == 1 ? from.size() : 1 + below(from.size());
    queue({.to = to, .from = from.data(), .bytes = bytes, .not_before = hold_back()});
    to += bytes;
    from = from.subspan(bytes);
  }
}

bool PutQueue::signal(std::byte* word, std::uint64_t value, std::optional<Bell> bell) {
  std::unique_lock lock(mutex_);
  if (!wait_for_room(lock)) return false;
  queue({.to = word, .value = value, .bell = bell});
  hand_to_wire();
  return true;
}

Result PutQueue::flush(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return dead_ || steps_.empty(); };
  if (!deadline) {
    progress_.wait(lock, over);
  } else if (!progress_.wait_until(lock, *deadline, over)) {
    return Result::failure(ETIMEDOUT);
  }
  return dead_ ? Result::failure(ECONNRESET) : Result::moved(0);
}

void PutQueue::kill() noexcept {
  const std::lock_guard lock(mutex_);
  dead_ = true;
  steps_.clear();
  progress_.notify_all();
}

void PutQueue::queue(Step step) {
  bytes_ += step.bytes;
  steps_.push_back(step);
}

void PutQueue::hand_to_wire() {
  if (!with_wire_) Wire::of_puts().take(shared_from_this());
  with_wire_ = true;
}

// Delays few steps, and briefly, so that tests with millions of puts end. The delay is long enough to reveal code that
// works only by lucky timing.
PutQueue::Clock::time_point PutQueue::hold_back() {
  if (below(512) != 0) return {};
  return Clock::now() + std::chrono::microseconds(below(300));
}

std::optional<PutQueue::Clock::time_point> PutQueue::run() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  auto next = Clock::time_point::max();
  const bool copied = carry_out_copies(now, next);
  const bool retired = retire();
  if (retired) progress_.notify_all();
  if (steps_.empty()) {
    with_wire_ = false;
    return std::nullopt;
  }
  return copied || retired ? now : next;
}

// Returns how many steps may be shuffled. A signal waits for the copies before it, but copies after it need not wait
// for the signal.
std::size_t PutQueue::reach_of_shuffle() {
  if (below(4) == 0) return steps_.size();
  const auto signal = std::find_if(steps_.begin(), steps_.end(), [](const Step& step) { return step.from == nullptr; });
  return static_cast<std::size_t>(signal - steps_.begin());
}

bool PutQueue::carry_out_copies(Clock::time_point now, Clock::time_point& next) {
  order_.clear();
  const std::size_t reach = reach_of_shuffle();
  for (std::size_t i = 0; i < reach; ++i) {
    const Step& step = steps_[i];
    if (step.from == nullptr || step.done) continue;
    if (step.not_before <= now) {
      order_.push_back(i);
    } else {
      next = std::min(next, step.not_before);
    }
  }
  std::shuffle(order_.begin(), order_.end(), random_);
  for (const std::size_t i : order_) {
    Step& step = steps_[i];
    copy_put(step.to, step.from, step.bytes);
    step.done = true;
  }
  return !order_.empty();
}

bool PutQueue::retire() {
  bool any = false;
  for (; !steps_.empty(); steps_.pop_front(), any = true) {
    const Step& step = steps_.front();
    if (step.from == nullptr) {
      deliver(step);
    } else if (!step.done) {
      break;
    }
    bytes_ -= step.bytes;
  }
  return any;
}

void PutQueue::deliver(const Step& signal) {
  reinterpret_cast<layout::Word*>(signal.to)->store(signal.value, std::memory_order_release);  // SIGNAL
  if (!signal.bell) return;
  arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
  const auto bell = index(*signal.bell);
  const std::uint64_t epoch = page_.waiters[bell].epoch.load(std::memory_order_acquire);  // SLEEP
  if ((epoch & 1) == 0 || epoch == rung_[bell]) return;
  rung_[bell] = epoch;
  target_.bells[bell].notify();
}

}  // namespace wherry::fabric::inproc
