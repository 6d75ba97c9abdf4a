// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/sample_length.hpp"

#include <algorithm>

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
  double each = warm_up.seconds / static_cast<double>(sample.messages);
  return within(sample, options, static_cast<std::uint64_t>(options.seconds / std::max(each, 1e-9)));
}

}  // namespace wherry::bench
