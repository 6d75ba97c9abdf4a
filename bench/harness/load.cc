// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/load.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/clock.hpp"

namespace wherry::bench {
namespace {

constexpr double kMostCores = 0.15;

double cpu_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
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
          .own = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN)};
}

ForeignLoad LoadWatch::load() const {
  const Reading end = now();
  const double wall = std::max(end.wall - start_.wall, 1e-3);
  // A few ticks are the error of the counters, not somebody's load.
  constexpr double slack = 0.03;
  const double busy = (end.busy - start_.busy) - (end.own - start_.own) - slack;
  const double steal = end.steal - start_.steal - slack;
  return {.busy = std::max(busy, 0.0) / wall, .steal = std::max(steal, 0.0) / wall};
}

}  // namespace wherry::bench
