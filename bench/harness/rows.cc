// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace wherry::bench {
namespace {

/// The rows of one system at one point.
class Rows {
 public:
  Rows(std::vector<Row>& rows, Row common, std::span<const Outcome> outcomes)
      : rows_(rows), common_(std::move(common)), outcomes_(outcomes) {}

  void add(const std::string& metric, const std::function<double(const Outcome&)>& figure) {
    std::vector<double> samples;
    for (const Outcome& outcome : outcomes_) samples.push_back(figure(outcome));
    Row row = common_;
    row.metric = metric;
    summarise(row, std::move(samples));
    rows_.push_back(std::move(row));
  }

 private:
  std::vector<Row>& rows_;
  Row common_;
  std::span<const Outcome> outcomes_;
};

void add_throughput(Rows& rows, const System& system, const Sample& sample) {
  const auto messages = static_cast<double>(sample.messages) * sample.senders;
  const double gigabytes = messages * static_cast<double>(sample.size) / 1e9;
  const bool bytes_moved = sample.touched || !system.in_place();
  if (bytes_moved) {
    rows.add("GB/s", [=](const Outcome& outcome) { return gigabytes / outcome.seconds; });
    rows.add("cpu_s_per_GB", [=](const Outcome& outcome) { return outcome.cpu_seconds / gigabytes; });
    rows.add("switches_per_GB",
             [=](const Outcome& outcome) { return static_cast<double>(outcome.context_switches) / gigabytes; });
  }
  rows.add("msgs/s", [=](const Outcome& outcome) { return messages / outcome.seconds; });
  if (sample.senders > 1 && sample.idle == 0) {
    rows.add("memory_bytes", [](const Outcome& outcome) { return static_cast<double>(outcome.memory_bytes); });
    rows.add("memory_bytes_per_connection",
             [=](const Outcome& outcome) { return static_cast<double>(outcome.memory_bytes) / sample.senders; });
  }
}

double mean(const Outcome& outcome) {
  const std::vector<double>& all = outcome.latencies_ns;
  if (all.empty()) return outcome.mean_latency_ns;
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

void add_latency(Rows& rows, const Sample& sample, bool each_known) {
  const std::string prefix = sample.question == Question::asleep ? "asleep_ns_" : "ns_";
  rows.add(prefix + "mean", mean);
  if (!each_known) return;
  const auto share = [](double part) {
    return [=](const Outcome& outcome) { return percentile(outcome.latencies_ns, part); };
  };
  rows.add(prefix + "p50", share(0.5));
  rows.add(prefix + "p99", share(0.99));
  rows.add(prefix + "p99.9", share(0.999));
  rows.add(prefix + "max", share(1));
}

}  // namespace

double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) throw std::invalid_argument("no latencies were measured");
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void append_rows(std::vector<Row>& rows, const std::string& bench, const System& system, const Sample& sample,
                 std::span<const Outcome> outcomes) {
  if (outcomes.empty()) return;
  Row common{.bench = bench,
             .system = system.name(),
             .version = system.version(),
             .mode = sample.touched ? "touched" : "handover",
             .senders = sample.senders + sample.idle,
             .size = sample.size};
  Rows result(rows, std::move(common), outcomes);
  if (sample.question == Question::stream) return add_throughput(result, system, sample);
  const bool each_known = std::none_of(outcomes.begin(), outcomes.end(),
                                       [](const Outcome& outcome) { return outcome.latencies_ns.empty(); });
  add_latency(result, sample, each_known);
}

}  // namespace wherry::bench
