// SPDX-License-Identifier: Apache-2.0
#include "bench/file/program/run_job.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "base/clock.hpp"
#include "bench/harness/meeting.hpp"
#include "bench/harness/process_group.hpp"
#include "bench/peers/foreign/usage.hpp"

namespace wherry::bench::file {
namespace {

constexpr std::chrono::seconds kPatience{200};

/// What one process tells.
struct Told {
  std::uint64_t passes = 0;
  std::uint64_t ended_at = 0;  ///< ns of the monotonic clock
  double cpu_seconds = 0;      ///< since the start
};

/// What all processes of a job share.
class Page {
 public:
  explicit Page(std::uint32_t processes) : length_(sizeof(Gate) + processes * sizeof(Told)) {
    void* const memory = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    start_ = new (memory) Gate;
    told_ = {new (start_ + 1) Told[processes], processes};
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { ::munmap(start_, length_); }

  [[nodiscard]] Gate& start() { return *start_; }
  [[nodiscard]] std::span<Told> told() { return told_; }

 private:
  std::size_t length_;
  Gate* start_;
  std::span<Told> told_;
};

double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The passes of one process.
void take_part(const Job& job, Gate& start, Told& told, const Part& part, std::span<const pid_t> servers) {
  for (std::uint32_t i = 0; i < job.warm_ups; ++i) part.pass();
  start.pass(job.processes);
  if (job.check) return part.check();
  const auto begin = static_cast<std::uint64_t>(start.opened_at());
  const double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds_of(servers);
  do {
    part.pass();
    ++told.passes;
    told.ended_at = monotonic_ns();
  } while (static_cast<double>(told.ended_at - begin) < job.seconds * 1e9);
  told.cpu_seconds = cpu_seconds(RUSAGE_SELF) + cpu_seconds_of(servers) - cpu;
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
  finding.seconds = static_cast<double>(end - static_cast<std::uint64_t>(page.start().opened_at())) / 1e9;
  return finding;
}

}  // namespace

Finding run_processes(const Job& job, std::span<const pid_t> servers, const Work& work) {
  const double reaped = cpu_seconds(RUSAGE_CHILDREN);
  Page page(job.processes);
  ProcessGroup processes;
  for (std::uint32_t i = 0; i < job.processes; ++i) {
    processes.start(fmt::format("process {}", i), [&, i] {
      try {
        // The servers' time is everybody's: one process counts it.
        const auto counted = i == 0 ? servers : std::span<const pid_t>();
        work(i, [&](const Part& part) { take_part(job, page.start(), page.told()[i], part, counted); });
        return 0;
      } catch (const std::exception& error) {
        fmt::print(stderr, "process {}: {}\n", i, error.what());
        std::fflush(stderr);
        return 1;
      }
    });
  }
  if (const std::string failure = processes.wait(kPatience); !failure.empty()) throw std::runtime_error(failure);
  Finding finding = sum_up(job, page);
  finding.reaped_cpu_seconds = cpu_seconds(RUSAGE_CHILDREN) - reaped;
  return finding;
}

}  // namespace wherry::bench::file
