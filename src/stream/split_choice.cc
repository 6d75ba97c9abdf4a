// SPDX-License-Identifier: Apache-2.0
#include "stream/split_choice.hpp"

#include <algorithm>
#include <bit>

namespace wherry::stream {
namespace {

/// What makes a sample: so much takes 200 us and more, and is several times what a ring holds.
constexpr std::uint64_t kSampleBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kLeastMessages = 2;

/// A message of this size is a sample by itself: what a ring holds of the one before it no longer counts.
constexpr std::uint64_t kHuge = std::uint64_t{64} << 20;

/// Of a trial; the best counts. The first may meet pages that the ring has not had before.
constexpr int kSamplesOfTrial = 2;

/// One byte in a hundred, at most, is sent for a trial.
constexpr std::uint64_t kBetweenTrials = 100;
constexpr std::uint64_t kLongestInterval = 16;

/// The other way must be faster by so much.
constexpr double kHysteresis = 0.9;

std::uint64_t messages_of_sample(std::size_t bytes) {
  return bytes >= kHuge ? 1 : std::max(kSampleBytes / bytes, kLeastMessages);
}
int samples_of_trial(std::size_t bytes) { return bytes >= kHuge ? 1 : kSamplesOfTrial; }

SplitChoice::Way other(SplitChoice::Way way) {
  return way == SplitChoice::Way::ring ? SplitChoice::Way::split : SplitChoice::Way::ring;
}

}  // namespace

std::size_t SplitChoice::class_of(std::size_t bytes) {
  constexpr std::size_t kSmallest = 16;  // 64 KiB and less
  const auto log = static_cast<std::size_t>(std::bit_width(bytes));
  return std::clamp(log, kSmallest, kSmallest + kClasses - 1) - kSmallest;
}

void SplitChoice::went(Way way, std::size_t bytes, std::int64_t began_ns, std::int64_t ended_ns) {
  SizeClass& size = classes_[class_of(bytes)];
  const bool counts = bytes >= kHuge || (last_end_ns_ != 0 && last_way_ == way);
  const std::int64_t since = bytes >= kHuge ? began_ns : last_end_ns_;
  last_way_ = way;
  last_end_ns_ = ended_ns;
  if (counts && way == size.way) {
    size.ns += ended_ns - since;
    size.bytes += bytes;
    if (size.bytes >= messages_of_sample(bytes) * bytes) sampled(size);
  }
  if (size.way == size.home) {
    size.bytes_to_go -= std::min<std::uint64_t>(size.bytes_to_go, bytes);
    if (size.bytes_to_go == 0 && size.cost[static_cast<std::size_t>(size.home)] != 0) begin_trial(size, bytes);
  } else if (size.samples_to_go == 0 || --size.messages_to_go == 0) {
    end_trial(size, bytes);
  }
}

/// Fast down, slowly up: a sample during which something else ran says little.
void SplitChoice::sampled(SizeClass& size) {
  const double sample = static_cast<double>(size.ns) / static_cast<double>(size.bytes);
  double& cost = size.cost[static_cast<std::size_t>(size.way)];
  cost = cost == 0 || sample < cost ? sample : cost + (sample - cost) / 4;
  size.ns = 0;
  size.bytes = 0;
  if (size.way != size.home) --size.samples_to_go;
}

void SplitChoice::begin_trial(SizeClass& size, std::size_t bytes) {
  size.way = other(size.home);
  size.cost[static_cast<std::size_t>(size.way)] = 0;
  size.samples_to_go = samples_of_trial(bytes);
  // The first is no part of a sample, and where the receiver does not split, none is.
  size.messages_to_go = 2 * size.samples_to_go * static_cast<int>(messages_of_sample(bytes)) + 1;
  size.ns = 0;
  size.bytes = 0;
}

void SplitChoice::end_trial(SizeClass& size, std::size_t bytes) {
  const double tried = size.cost[static_cast<std::size_t>(size.way)];
  const double before = size.cost[static_cast<std::size_t>(size.home)];
  if (tried != 0 && tried < kHysteresis * before) {
    size.home = size.way;
    size.interval = 1;
  } else {
    size.interval = std::min(2 * size.interval, kLongestInterval);
  }
  size.way = size.home;
  size.bytes_to_go = size.interval * kBetweenTrials * static_cast<std::uint64_t>(samples_of_trial(bytes)) *
                     (messages_of_sample(bytes) + 1) * bytes;
  size.ns = 0;
  size.bytes = 0;
}

}  // namespace wherry::stream
