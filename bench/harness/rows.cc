// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace wherry::bench {
namespace {

/// From this size on a lap is long enough to be timed, and pages touched for the first time are most of what it takes.
constexpr std::size_t kLapSize = std::size_t{16} << 20;

void add_throughput(Figures& figures, const System& system, const Sample& sample, const Outcome& outcome) {
  const auto messages = static_cast<double>(sample.messages) * sample.senders;
  const double gigabytes = messages * static_cast<double>(sample.size) / 1e9;
  const bool bytes_moved = sample.touched || !system.in_place();
  if (bytes_moved) {
    figures.push_back({"GB/s", gigabytes / outcome.seconds});
    // A ring that does not hold two messages is gone round within one.
    if (sample.size >= kLapSize && outcome.lap > 1 && sample.senders == 1 && !system.prefaulted()) {
      const double lap = static_cast<double>(outcome.lap) * static_cast<double>(sample.size) / 1e9;
      figures.push_back({"first_lap_GB/s", lap / outcome.first_lap_seconds});
    }
    figures.push_back({"cpu_s_per_GB", outcome.cpu_seconds / gigabytes});
    figures.push_back({"switches_per_GB", static_cast<double>(outcome.context_switches) / gigabytes});
  }
  figures.push_back({"msgs/s", messages / outcome.seconds});
  if (sample.senders > 1 && sample.idle == 0) {
    const auto memory = static_cast<double>(outcome.memory_bytes);
    figures.push_back({"memory_bytes", memory});
    figures.push_back({"memory_bytes_per_connection", memory / sample.senders});
  }
}

double mean(const Outcome& outcome) {
  const std::vector<double>& all = outcome.latencies_ns;
  if (all.empty()) return outcome.mean_latency_ns;
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

/// Of fewer the 999th thousandth would be the slowest.
constexpr std::size_t kEnoughForThousandths = 1000;

void add_latency(Figures& figures, const Sample& sample, const Outcome& outcome) {
  const std::string prefix = sample.question == Question::asleep ? "asleep_ns_" : "ns_";
  figures.push_back({prefix + "mean", mean(outcome)});
  if (outcome.latencies_ns.empty()) return;
  figures.push_back({prefix + "p50", percentile(outcome.latencies_ns, 0.5)});
  figures.push_back({prefix + "p99", percentile(outcome.latencies_ns, 0.99)});
  if (outcome.latencies_ns.size() >= kEnoughForThousandths) {
    figures.push_back({prefix + "p99.9", percentile(outcome.latencies_ns, 0.999)});
  }
  figures.push_back({prefix + "max", percentile(outcome.latencies_ns, 1)});
}

/// The values of one metric; fewer than there are samples if some do not have it.
std::vector<double> values_of(std::span<const Figures> samples, const std::string& metric) {
  std::vector<double> values;
  for (const Figures& figures : samples) {
    for (const Figure& one : figures) {
      if (one.metric == metric) values.push_back(one.value);
    }
  }
  return values;
}

}  // namespace

double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) throw std::invalid_argument("no latencies were measured");
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Figures figures_of(const System& system, const Sample& sample, const Outcome& outcome) {
  Figures figures;
  if (sample.question == Question::stream) {
    add_throughput(figures, system, sample, outcome);
  } else {
    add_latency(figures, sample, outcome);
  }
  return figures;
}

void append_rows(std::vector<Row>& rows, const std::string& bench, const System& system, const Sample& sample,
                 std::span<const Figures> samples) {
  if (samples.empty()) return;
  for (const Figure& one : samples[0]) {
    std::vector<double> values = values_of(samples, one.metric);
    if (values.size() != samples.size()) continue;
    Row row{.bench = bench,
            .system = system.name(),
            .version = system.version(),
            .mode = sample.touched ? "touched" : "handover",
            .senders = sample.senders + sample.idle,
            .size = sample.size,
            .metric = one.metric};
    summarise(row, std::move(values));
    rows.push_back(std::move(row));
  }
}

}  // namespace wherry::bench
