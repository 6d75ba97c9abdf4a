// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>

#include "bench/harness/connect_trial.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/table.hpp"

namespace wherry::bench {
namespace {

/// Slabs are the whole machine's: what a few connections need is lost in what others do.
constexpr std::uint32_t kEnoughToSee = 100;

struct Entry {
  System* system;
  std::vector<ConnectTrial> trials{};
  bool failed = false;
};

double median(std::vector<double> values) {
  Row row;
  summarise(row, std::move(values));
  return row.median;
}

void append(std::vector<Row>& rows, const Entry& entry, std::uint32_t connections, const char* metric,
            std::vector<double> samples) {
  Row row{.bench = "connect",
          .system = entry.system->name(),
          .version = entry.system->version(),
          .mode = "handover",
          .senders = connections,
          .metric = metric};
  summarise(row, std::move(samples));
  rows.push_back(std::move(row));
}

void append_rows(std::vector<Row>& rows, const Entry& entry) {
  std::vector<double> listens;
  for (const ConnectTrial& trial : entry.trials) listens.push_back(trial.listen_ns);
  append(rows, entry, 1, "listen_ns", std::move(listens));
  for (std::size_t i = 0; i < entry.trials[0].steps.size(); ++i) {
    const std::uint32_t connections = entry.trials[0].steps[i].connections;
    const auto add = [&](const char* metric, auto&& figure) {
      std::vector<double> samples;
      for (const ConnectTrial& trial : entry.trials) samples.push_back(figure(trial.steps[i]));
      append(rows, entry, connections, metric, std::move(samples));
    };
    add("connect_ns", [](const ConnectStep& step) { return median(step.connect_ns); });
    add("memory_bytes_per_connection", [](const ConnectStep& step) { return step.memory_bytes / step.connections; });
    add("descriptors_per_connection", [](const ConnectStep& step) { return step.descriptors / step.connections; });
    if (connections < kEnoughToSee) continue;
    add("kernel_bytes_per_connection", [](const ConnectStep& step) { return step.kernel_bytes / step.connections; });
  }
}

}  // namespace

std::vector<Row> measure_connections(const Options& options, std::span<System* const> systems,
                                     Circumstances& circumstances) {
  std::vector<Entry> entries;
  for (System* system : systems) {
    if (system->connector()) entries.push_back({system});
  }
  std::vector<std::uint32_t> numbers = options.senders;
  std::sort(numbers.begin(), numbers.end());
  Progress progress(entries.size() * static_cast<std::size_t>(options.samples));
  std::mt19937_64 random(options.seed);
  std::vector<Entry*> turns;
  for (Entry& entry : entries) turns.push_back(&entry);
  for (int i = 0; i < options.samples; ++i) {
    std::shuffle(turns.begin(), turns.end(), random);
    for (Entry* entry : turns) {
      progress.step(fmt::format("connect, {}: sample {} of {}", entry->system->name(), i + 1, options.samples));
      if (entry->failed) continue;
      try {
        entry->trials.push_back(try_connections(*entry->system, numbers));
      } catch (const std::runtime_error& error) {
        entry->failed = true;
        circumstances.failures.push_back({entry->system->name(), "connect", error.what()});
      }
    }
  }
  progress.clear();
  std::vector<Row> rows;
  for (const Entry& entry : entries) {
    if (!entry.failed) append_rows(rows, entry);
  }
  return rows;
}

std::string connect_tables(std::span<const Row> rows, const Options& /*options*/) {
  const auto one = [&](const std::string& title, const std::string& metric, double unit) {
    return table(rows, {.title = title,
                        .bench = "connect",
                        .mode = "handover",
                        .metric = metric,
                        .unit = unit,
                        .highest_is_best = false,
                        .columns = Columns::senders});
  };
  return one("us to register a port", "listen_ns", 1e3) +
         one("us until both sides have the connection, by number of connections", "connect_ns", 1e3) +
         one("KiB of memory per idle connection, both sides", "memory_bytes_per_connection", 1024) +
         one("KiB of the kernel's slabs per idle connection, both sides", "kernel_bytes_per_connection", 1024) +
         one("descriptors per connection, both sides", "descriptors_per_connection", 1);
}

}  // namespace wherry::bench
