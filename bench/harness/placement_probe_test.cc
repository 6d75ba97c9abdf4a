// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement_probe.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

namespace wherry::bench {
namespace {

std::vector<int> usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<unsigned>(core), &allowed)) cores.push_back(core);
  }
  return cores;
}

TEST(PlacementProbe, LooksAtBothMeasurementsAndLeavesTheCallerWhereItWas) {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) GTEST_SKIP() << "there is one core";
  const Prober prober = probe_between({cores[0], cores[1]});
  // Under load a probe may fail. It must still restore the caller's cores.
  if (const std::optional<Probe> probe = prober()) {
    EXPECT_GT(probe->round_trip_ns, 1);
    EXPECT_GT(probe->copy_gb_s, 0);
  }
  EXPECT_EQ(usable_cores(), cores);
}

TEST(PlacementProbe, ACoreThatIsNotThereIsNoProbe) {
  EXPECT_FALSE(probe_between({usable_cores()[0], CPU_SETSIZE - 1})());
}

}  // namespace
}  // namespace wherry::bench
