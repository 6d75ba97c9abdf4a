// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/run_job.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/harness/process_group.hpp"
#include "bench/harness/programs/usage.hpp"
#include "bench/harness/sample_memory.hpp"
#include "bench/harness/usage.hpp"

namespace wherry::bench::file {
namespace {

constexpr std::chrono::seconds kJobTimeout{200};

/// What one process tells.
struct Told {
  std::uint64_t passes = 0;
  std::uint64_t ended_at = 0;  ///< ns of the monotonic clock
  double cpu_seconds = 0;      ///< since the start
};

/// What all processes of a job share.
class Page {
 public:
  explicit Page(std::uint32_t processes)
      : length_(sizeof(StartBarrier) + sizeof(WayCounts) + processes * sizeof(Told)) {
    void* const memory = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    start_ = new (memory) StartBarrier;
    ways_ = new (start_ + 1) WayCounts;
    told_ = {new (ways_ + 1) Told[processes], processes};
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { ::munmap(start_, length_); }

  [[nodiscard]] StartBarrier& start() { return *start_; }
  [[nodiscard]] WayCounts& ways() { return *ways_; }
  [[nodiscard]] std::span<Told> told() { return told_; }

 private:
  std::size_t length_;
  StartBarrier* start_;
  WayCounts* ways_;
  std::span<Told> told_;
};

/// The passes of one process, or thread.
void take_part(const Job& job, StartBarrier& start, Told& told, const Part& part, std::span<const pid_t> servers) {
  for (std::uint32_t i = 0; i < job.warm_ups; ++i) part.pass();
  start.pass(job.processes);
  if (job.check) return part.check();
  const auto begin = static_cast<std::uint64_t>(start.opened_at());
  const int own = job.threads ? RUSAGE_THREAD : RUSAGE_SELF;
  const double cpu = usage_now(own).cpu + cpu_seconds_of(servers);
  do {
    part.pass();
    ++told.passes;
    told.ended_at = monotonic_ns();
  } while (static_cast<double>(told.ended_at - begin) < job.seconds * 1e9);
  told.cpu_seconds = usage_now(own).cpu + cpu_seconds_of(servers) - cpu;
}

Finding sum_up(const Job& job, Page& page) {
  if (job.check) return {.useful_bytes = job.processes * job.bytes};
  Finding finding;
  std::uint64_t end = 0;
  for (const Told& told : page.told()) {
    finding.useful_bytes += told.passes * job.bytes;
    finding.cpu_seconds += told.cpu_seconds;
    end = std::max(end, told.ended_at);
  }
  finding.ways = used_ways(page.ways());
  finding.seconds = static_cast<double>(end - static_cast<std::uint64_t>(page.start().opened_at())) / 1e9;
  return finding;
}

/// Where a job's processes, or threads, do their work.
class Workers {
 public:
  Workers(const Job& job, std::span<const pid_t> servers, const Work& work)
      : job_(job), servers_(servers), work_(work), page_(job.processes) {}

  /// Returns what went wrong.
  std::string run() {
    ProcessGroup processes;
    if (job_.threads) {
      processes.start("the threads' process", [this] { return run_threads(); });
    } else {
      for (std::uint32_t i = 0; i < job_.processes; ++i) {
        processes.start(fmt::format("process {}", i), [this, i] { return run_one(i); });
      }
    }
    return processes.wait(kJobTimeout);
  }

  [[nodiscard]] Page& page() { return page_; }

 private:
  int run_threads() {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < job_.processes; ++i) {
      threads.emplace_back([this, i] {
        // The others wait for it.
        if (run_one(i) != 0) std::_Exit(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  }

  int run_one(std::uint32_t number) {
    try {
      // One thread counts the servers' time, for all.
      const auto counted = number == 0 ? servers_ : std::span<const pid_t>();
      work_(number, [&](const Part& part) { take_part(job_, page_.start(), page_.told()[number], part, counted); });
      if (number == 0) read_own_ways(page_.ways());
      return 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} {}: {}\n", job_.threads ? "thread" : "process", number, error.what());
      std::fflush(stderr);
      return 1;
    }
  }

  const Job& job_;
  std::span<const pid_t> servers_;
  const Work& work_;
  Page page_;
};

}  // namespace

Finding run_processes(const Job& job, std::span<const pid_t> servers, const Work& work) {
  const double reaped = usage_now(RUSAGE_CHILDREN).cpu;
  Workers workers(job, servers, work);
  if (const std::string failure = workers.run(); !failure.empty()) throw std::runtime_error(failure);
  Finding finding = sum_up(job, workers.page());
  finding.reaped_cpu_seconds = usage_now(RUSAGE_CHILDREN).cpu - reaped;
  return finding;
}

}  // namespace wherry::bench::file
