// SPDX-License-Identifier: Apache-2.0
//
// One sample of a system that is driven through links: forks its processes, waits for them, and adds up what they
// report.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "bench/harness/link.hpp"
#include "bench/harness/participant.hpp"
#include "bench/harness/process_group.hpp"
#include "bench/harness/sample_memory.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {
namespace {

std::string name_of(std::uint32_t rank) { return rank == 0 ? "receiver" : fmt::format("sender {}", rank); }
std::string bystander_name(std::uint32_t rank) { return fmt::format("bystander {}", rank); }

int process(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::uint32_t rank,
            const std::string& name) {
  try {
    take_part(system, sample, shared, rank, name);
    return 0;
  } catch (const std::exception& error) {
    shared.report(rank).set_error(error.what());
    return 1;
  }
}

int bystander(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::uint32_t rank,
              const std::string& name) {
  try {
    system.stand_by(Place{sample, rank, shared, name});
    return 0;
  } catch (const std::exception& error) {
    shared.report(rank).set_error(error.what());
    return 1;
  }
}

/// The first error that a process told of itself, or what is known from outside.
std::string explain(const std::string& failure, SampleMemory& shared) {
  for (std::uint32_t rank = 0; rank < shared.processes(); ++rank) {
    const char* error = shared.report(rank).error;
    const std::string name = rank < shared.ranks() ? name_of(rank) : bystander_name(rank);
    if (*error != '\0' && (failure.starts_with(name + ":") || failure.starts_with("not done"))) {
      return fmt::format("{}: {}", name, error);
    }
  }
  return failure;
}

void check_sums(SampleMemory& shared, const Sample& sample) {
  std::uint64_t received = shared.report(0).sum;
  std::uint64_t sent = 0;
  for (std::uint32_t rank = 1; rank < shared.ranks(); ++rank) sent += shared.report(rank).sum;
  // In an exchange each side has written minus read.
  const bool right = sample.question == Question::stream ? sent == received : sent + received == 0;
  if (!right) throw std::runtime_error("what was received is not what was sent");
}

}  // namespace

std::uint64_t warm_up_messages(const Sample& sample, bool in_place) {
  if (sample.question == Question::asleep) return 5;
  if (sample.question == Question::latency) return 1000;
  // Enough to fill a ring or a pool of slots once, within a moment. With many senders, the memory adds up.
  constexpr std::uint64_t bytes = 2 << 20;
  const std::uint64_t most = sample.senders == 1 ? 8192 : 1024;
  const std::uint64_t least = sample.senders == 1 && in_place ? 5 : 1;
  return std::clamp<std::uint64_t>(bytes / sample.size, least, most);
}

Outcome add_up(SampleMemory& shared, const Sample& sample) {
  Outcome outcome;
  outcome.seconds = static_cast<double>(shared.report(0).part_ns) / 1e9;
  outcome.lap = shared.lap();
  if (outcome.lap > 0 && sample.question == Question::stream) {
    outcome.first_lap_seconds = static_cast<double>(shared.report(0).lap_ns) / 1e9;
  }
  for (std::uint32_t rank = 0; rank < shared.ranks(); ++rank) {
    const Report& report = shared.report(rank);
    if (!report.complete) throw std::runtime_error(name_of(rank) + " did not report");
    outcome.cpu_seconds += report.cpu_seconds;
    outcome.context_switches += report.context_switches;
    outcome.memory_bytes += report.memory_bytes;
  }
  check_sums(shared, sample);
  if (sample.question == Question::stream) return outcome;
  const std::span<double> latencies = shared.latencies(1);
  outcome.latencies_ns.assign(latencies.begin(), latencies.end());
  if (sample.question == Question::asleep) {
    const std::span<double> kept = shared.latencies(0);
    for (std::size_t i = 0; i < kept.size(); ++i) outcome.latencies_ns[i] = (latencies[i] - kept[i]) / 2;
  }
  std::sort(outcome.latencies_ns.begin(), outcome.latencies_ns.end());
  return outcome;
}

void run_ranks(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::span<const std::uint32_t> ranks,
               const std::string& name) {
  ProcessGroup group;
  for (const std::uint32_t rank : ranks) {
    const bool takes_part = rank < shared.ranks();
    group.start(takes_part ? name_of(rank) : bystander_name(rank), [&, rank, takes_part] {
      return takes_part ? process(system, sample, shared, rank, name) : bystander(system, sample, shared, rank, name);
    });
  }
  const std::string failure =
      group.wait(std::chrono::milliseconds(static_cast<std::int64_t>(sample.timeout_seconds * 1e3)));
  if (!failure.empty()) throw std::runtime_error(explain(failure, shared));
}

Outcome LinkSystem::run(const Sample& sample) {
  static std::uint64_t number = 0;
  const std::string unique = fmt::format("wherry-bench-{}-{}", ::getpid(), ++number);
  SampleMemory shared(sample.senders, sample.question == Question::stream ? 0 : sample.messages, bystanders());
  std::vector<std::uint32_t> ranks(shared.processes());
  std::iota(ranks.begin(), ranks.end(), 0U);
  run_ranks(*this, sample, shared, ranks, unique);
  return add_up(shared, sample);
}

}  // namespace wherry::bench
