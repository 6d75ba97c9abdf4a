// SPDX-License-Identifier: Apache-2.0
#include "stream/split_choice.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace wherry::stream {
namespace {

/// What makes a sample: so much takes 200 us and more. And several times what a ring holds.
constexpr std::uint64_t kSampleBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kSampleRings = 4;
constexpr std::uint64_t kLeastMessages = 2;

/// A message of this size, or of so many rings, is a sample by itself: what a ring holds of the one before it no longer
/// counts.
constexpr std::uint64_t kHuge = std::uint64_t{64} << 20;
constexpr std::uint64_t kHugeRings = 16;

/// Of a trial; the best counts. The first may meet pages that the ring has not had before.
constexpr int kSamplesOfTrial = 2;

/// How much of all classes a trial of one may meanwhile take along.
constexpr std::uint64_t kMostTakenAlong = 8;

/// One byte in a hundred, at most, is sent for a trial.
constexpr std::uint64_t kBetweenTrials = 100;
constexpr std::uint8_t kLongestInterval = 16;

/// The other way must be faster by so much.
constexpr float kHysteresis = 0.9F;

SplitChoice::Way other(SplitChoice::Way way) {
  return way == SplitChoice::Way::ring ? SplitChoice::Way::split : SplitChoice::Way::ring;
}

}  // namespace

std::size_t SplitChoice::class_of(std::size_t bytes) {
  constexpr std::size_t kSmallest = 19;  // less than 512 KiB
  const auto log = static_cast<std::size_t>(std::bit_width(bytes));
  return std::clamp(log, kSmallest, kSmallest + kClasses - 1) - kSmallest;
}

bool SplitChoice::huge(std::size_t bytes) const { return bytes >= std::max<std::uint64_t>(kHuge, kHugeRings * ring_); }

std::uint64_t SplitChoice::messages_of_sample(std::size_t bytes) const {
  return huge(bytes) ? 1 : std::max(std::max(kSampleBytes, kSampleRings * ring_) / bytes, kLeastMessages);
}

std::uint64_t SplitChoice::messages_of_trial(std::size_t bytes) const {
  // Where the receiver does not split, none is a sample.
  return huge(bytes) ? 1 : kSamplesOfTrial * messages_of_sample(bytes) + ring_ / bytes + 2;
}

void SplitChoice::went(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns) {
  SizeClass& size = classes_[class_of(bytes)];
  const bool alone = huge(bytes);
  const std::int64_t since = alone ? began_ns : last_end_ns_;
  const bool follows = alone || (last_end_ns_ != 0 && last_way_ == way);
  last_way_ = way;
  last_end_ns_ = ended_ns;
  if (trial_ != nullptr) {
    tried(size, way, bytes, follows ? ended_ns - since : 0);
    return;
  }
  if (follows && way == size.home) add_to_sample(size, way, bytes, ended_ns - since);
  size.bytes_to_go -= std::min<std::uint64_t>(size.bytes_to_go, bytes);
  if (size.bytes_to_go != 0) return;
  trial_ = &size;
  // Sizes that take turns and go different ways are no samples for each other: all go home first.
  const bool known = size.cost[static_cast<std::size_t>(size.home)] != 0;
  begin_trial(known ? other(size.home) : size.home, bytes);
}

/// True: that made a sample. Fast down, slowly up: one during which something else ran says little.
bool SplitChoice::add_to_sample(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns) const {
  size.ns += ns;
  size.bytes += bytes;
  if (size.bytes < messages_of_sample(bytes) * bytes) return false;
  const auto sample = static_cast<float>(size.ns) / static_cast<float>(size.bytes);
  float& cost = size.cost[static_cast<std::size_t>(way)];
  cost = cost == 0 || sample < cost ? sample : cost + (sample - cost) / 4;
  size.ns = 0;
  size.bytes = 0;
  return true;
}

void SplitChoice::begin_trial(Way way, std::size_t bytes) {
  trial_way_ = way;
  trial_->cost[static_cast<std::size_t>(way)] = 0;
  trial_samples_ = huge(bytes) || way == trial_->home ? 1 : kSamplesOfTrial;
  trial_filling_ = huge(bytes) || way == trial_->home ? 0 : ring_;
  trial_messages_ = messages_of_trial(bytes);
  trial_size_ = trial_messages_ * bytes;
  trial_bytes_ = kMostTakenAlong * trial_size_;
  for (SizeClass& any : classes_) any.ns = 0, any.bytes = 0;
}

/// A message during a trial. `ns`: 0 if it does not count.
void SplitChoice::tried(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns) {
  if (trial_filling_ != 0) {
    trial_filling_ -= std::min<std::uint64_t>(trial_filling_, bytes);
  } else if (&size == trial_ && way == trial_way_ && ns != 0 && add_to_sample(size, way, bytes, ns)) {
    --trial_samples_;
  }
  if (&size == trial_) --trial_messages_;
  trial_bytes_ -= std::min<std::uint64_t>(trial_bytes_, bytes);
  if (trial_samples_ == 0 && trial_way_ == trial_->home) {
    begin_trial(other(trial_way_), bytes);
  } else if (trial_samples_ == 0 || trial_messages_ == 0 || trial_bytes_ == 0) {
    end_trial();
  }
}

void SplitChoice::end_trial() {
  SizeClass& size = *std::exchange(trial_, nullptr);
  const float tried = size.cost[static_cast<std::size_t>(trial_way_)];
  if (trial_way_ != size.home && tried != 0 && tried < kHysteresis * size.cost[static_cast<std::size_t>(size.home)]) {
    size.home = trial_way_;
    size.interval = 1;
  } else {
    size.interval = std::min<std::uint8_t>(static_cast<std::uint8_t>(2 * size.interval), kLongestInterval);
  }
  size.bytes_to_go = size.interval * kBetweenTrials * trial_size_;
  for (SizeClass& any : classes_) any.ns = 0, any.bytes = 0;
}

}  // namespace wherry::stream
