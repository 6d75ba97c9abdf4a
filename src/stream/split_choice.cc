// SPDX-License-Identifier: Apache-2.0
#include "stream/split_choice.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace wherry::stream {
namespace {

/// Least size of a sample: this many bytes, which take 200 us or more, and this many rings.
constexpr std::uint64_t kSampleBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kSampleRings = 4;
constexpr std::uint64_t kLeastMessages = 2;

/// A message of at least this size, and of this many rings, is a sample by itself: the bytes of the message before it
/// that the ring holds no longer matter.
constexpr std::uint64_t kHuge = std::uint64_t{64} << 20;
constexpr std::uint64_t kHugeRings = 16;

/// Samples of a trial, of which the best counts. The first may touch new pages of the ring.
constexpr int kSamplesOfTrial = 2;

/// A trial may last this many times its own bytes, counting all classes.
constexpr std::uint64_t kMostTakenAlong = 8;

/// At most one byte in a hundred is sent in a trial.
constexpr std::uint64_t kBetweenTrials = 100;
constexpr std::uint8_t kLongestInterval = 16;

/// The other way must cost less than this fraction.
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
  // Bounds the trial: if the receiver does not split, no message becomes a sample.
  return huge(bytes) ? 1 : kSamplesOfTrial * messages_of_sample(bytes) + ring_ / bytes + 2;
}

void SplitChoice::record_transfer(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns) {
  SizeClass& size = classes_[class_of(bytes)];
  const bool alone = huge(bytes);
  const std::int64_t since = alone ? began_ns : last_end_ns_;
  const bool follows = alone || (last_end_ns_ != 0 && last_way_ == way);
  last_way_ = way;
  last_end_ns_ = ended_ns;
  if (trial_ != nullptr) {
    record_in_trial(size, way, bytes, follows ? ended_ns - since : 0);
    return;
  }
  if (follows && way == size.home) add_to_sample(size, way, bytes, ended_ns - since);
  size.bytes_to_go -= std::min<std::uint64_t>(size.bytes_to_go, bytes);
  if (size.bytes_to_go != 0) return;
  trial_ = &size;
  // If sizes alternate and go different ways, none becomes a sample. So if the home cost is unknown, all classes first
  // go this one's home way.
  const bool known = size.cost[static_cast<std::size_t>(size.home)] != 0;
  begin_trial(known ? other(size.home) : size.home, bytes);
}

/// Adds a message to the sample. True: the sample is complete. The cost follows faster samples at once and slower ones
/// by a quarter: something else may have run during a slow one.
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

/// Records a message during a trial. `ns`: 0 if it does not count.
void SplitChoice::record_in_trial(SizeClass& size, Way way, std::size_t bytes, std::int64_t ns) {
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
