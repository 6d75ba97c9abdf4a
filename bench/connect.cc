// SPDX-License-Identifier: Apache-2.0
//
// What does a connection cost? The time to connect and accept a default stream between two processes, and what 1 to
// 1000 idle connections take in memory and descriptors on each side. Memory is the proportional set size (PSS): what a
// page costs is divided among the processes that map it.
#include <sys/resource.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"
#include "base/open_descriptors.hpp"
#include "base/scoped_environment.hpp"
#include "bench/common/options.hpp"

namespace {

using namespace wherry;
using bench::Row;

constexpr std::chrono::seconds kPatience{20};

/// Kibibytes of one line of /proc/self/smaps_rollup.
std::uint64_t memory_kib(const std::string& field) {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1));
  }
  return 0;
}

/// A process that connects `count` times, and keeps what it got until told to stop.
struct Connector {
  SharedValue<std::atomic<std::size_t>> goal;    ///< how many connections there are to be
  SharedValue<std::array<double, 2000>> micros;  ///< how long each took
  SharedValue<std::atomic<std::size_t>> connected;

  [[nodiscard]] Child start(const std::string& where) {
    return Child([this, where] {
      std::vector<Stream> streams;
      while (true) {
        while (streams.size() < *goal) {
          const std::int64_t start = monotonic_ns();
          streams.push_back(connect(where, {}, kPatience));
          (*micros)[streams.size() - 1] = static_cast<double>(monotonic_ns() - start) / 1e3;
          *connected = streams.size();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      return true;
    });
  }
};

void accept_until(Listener& listener, std::vector<Stream>& streams, std::size_t count) {
  while (streams.size() < count) streams.push_back(listener.accept(kPatience));
}

Row figure(const std::string& metric, std::uint64_t size, std::vector<double> samples) {
  Row row{.bench = "connect", .system = "wherry shm", .mode = "handover", .size = size, .metric = metric};
  summarise(row, std::move(samples));
  fmt::print("{:>6} connections  {:<32} {:10.1f}  (mad {:.1f}, n {})\n", size, metric, row.median, row.mad, row.n);
  return row;
}

std::vector<Row> time_to_connect(const bench::Options& options) {
  Listener listener = listen("wherry+shm://*:*");
  Connector connector;
  const Child child = connector.start(listener.local().to_string());
  const std::size_t count = options.smoke ? 20 : 500;
  *connector.goal = count;
  std::vector<Stream> streams;
  accept_until(listener, streams, count);
  while (*connector.connected < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto begin = connector.micros->begin() + 10;  // The first ones warm up.
  return {figure("us_connect_and_accept", 1, {begin, connector.micros->begin() + static_cast<std::ptrdiff_t>(count)})};
}

std::vector<Row> cost_of_idle_connections(const bench::Options& options) {
  Listener listener = listen("wherry+shm://*:*");
  Connector connector;
  const Child child = connector.start(listener.local().to_string());
  std::vector<Stream> streams;
  *connector.goal = 1;
  accept_until(listener, streams, 1);  // What a process needs once is no cost of a connection.
  const std::uint64_t pss = memory_kib("Pss");
  const std::size_t descriptors = open_descriptors();
  std::vector<Row> rows;
  for (const std::size_t count : {1UL, 10UL, 100UL, 1000UL}) {
    if (options.smoke && count > 10) break;
    *connector.goal = count + 1;
    accept_until(listener, streams, count + 1);
    while (*connector.connected < count + 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto per_connection = [count](std::uint64_t all) {
      return static_cast<double>(all) / static_cast<double>(count);
    };
    rows.push_back(figure("kib_pss_per_idle_connection", count, {per_connection(memory_kib("Pss") - pss)}));
    rows.push_back(figure("descriptors_per_connection", count, {per_connection(open_descriptors() - descriptors)}));
  }
  return rows;
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What a connection costs: time, memory, descriptors"};
  bench::Options options;
  add_options(app, options);
  return run_benchmark(app, options, argc, argv, [&] {
    const ScopedEnvironment job("WHERRY_JOB", std::to_string(::getpid()).c_str());
    raise_descriptor_limit();
    std::vector<Row> rows = time_to_connect(options);
    for (Row& row : cost_of_idle_connections(options)) rows.push_back(std::move(row));
    return rows;
  });
}
