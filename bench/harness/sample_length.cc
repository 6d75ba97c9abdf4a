// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/sample_length.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace wherry::bench {
namespace {

constexpr std::uint64_t kMostRoundTrips = 100'000;

/// What a rate needs at least, whatever the time: a ring of a few messages must be gone round.
std::uint64_t least(const Sample& sample) {
  return sample.question != Question::stream ? 20 : sample.senders == 1 ? 4 : 2;
}

std::uint64_t most(const Sample& sample, const Options& options) {
  if (sample.question != Question::stream) return kMostRoundTrips;
  return options.bytes / sample.size / sample.senders;
}

/// Returns the seconds per message. For latency, the slowest 1 % of the round trips are left out: in these, a process
/// may not have run. They would make samples too short for the tail.
double seconds_of_one(const Sample& sample, const Outcome& warm_up) {
  const double mean = warm_up.seconds / static_cast<double>(sample.messages);
  const std::vector<double>& sorted = warm_up.latencies_ns;
  const std::size_t most = sorted.size() * 99 / 100;
  if (sample.question != Question::latency || most == 0) return mean;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(most);
  return std::min(mean, 2e-9 * std::accumulate(sorted.begin(), end, 0.0) / static_cast<double>(most));
}

std::uint64_t within(const Sample& sample, const Options& options, std::uint64_t messages) {
  if (options.smoke) messages = std::min<std::uint64_t>(messages, 100);
  return std::max(least(sample), std::min(messages, most(sample, options)));
}

}  // namespace

std::uint64_t first_messages(const Sample& sample, const Options& options) {
  if (sample.question == Question::asleep) return 20;
  if (sample.question == Question::latency) return within(sample, options, 1000);
  constexpr std::uint64_t bytes = 32 << 20;
  return within(sample, options, std::min<std::uint64_t>(bytes / sample.size, 20'000) / sample.senders);
}

std::uint64_t messages_for(const Sample& sample, const Outcome& warm_up, const Options& options) {
  const double each = std::max(seconds_of_one(sample, warm_up), 1e-9);
  return within(sample, options, static_cast<std::uint64_t>(options.seconds / each));
}

}  // namespace wherry::bench
