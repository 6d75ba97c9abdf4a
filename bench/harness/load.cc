// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/load.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>

#include "base/clock.hpp"
#include "bench/harness/usage.hpp"

namespace wherry::bench {
namespace {

constexpr double kMostCores = 0.15;

/// The CPU seconds of a process that lives and of all below it: some systems keep their processes from sample to
/// sample.
double living(pid_t process) {
  double sum = 0;
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) == 0 && ::clock_gettime(clock, &time) == 0) {
    sum = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; children >> child;) sum += living(child);
  return sum;
}

}  // namespace

bool ForeignLoad::disturbing() const { return busy + steal > kMostCores; }

LoadWatch::LoadWatch() : start_(now()) {}

LoadWatch::Reading LoadWatch::now() {
  // cpu  user nice system idle iowait irq softirq steal ...: in ticks, all cores together.
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double iowait = 0;
  double irq = 0;
  double softirq = 0;
  double steal = 0;
  std::string cpu;
  std::ifstream("/proc/stat") >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  const auto tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {.wall = static_cast<double>(monotonic_ns()) / 1e9,
          .busy = (user + nice + system + irq + softirq) / tick,
          .steal = steal / tick,
          .own = usage_now(RUSAGE_CHILDREN).cpu + living(::getpid())};
}

ForeignLoad LoadWatch::load(double gone) const {
  const Reading end = now();
  const double wall = std::max(end.wall - start_.wall, 1e-3);
  // A few ticks are the error of the counters, not load.
  constexpr double slack = 0.03;
  const double busy = (end.busy - start_.busy) - (end.own - start_.own) - gone - slack;
  const double steal = end.steal - start_.steal - slack;
  return {.busy = std::max(busy, 0.0) / wall, .steal = std::max(steal, 0.0) / wall};
}

ForeignLoad load_during(const std::function<void()>& work) {
  const LoadWatch watch;
  work();
  return watch.load();
}

}  // namespace wherry::bench
