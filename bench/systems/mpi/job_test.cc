// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/mpi/job.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace wherry::bench::mpi {
namespace {

TEST(MpiJob, IsOneLineOfWords) {
  EXPECT_EQ(to_line({.figure = "halo-2", .bytes = 1024, .seconds = 0.05}), "halo-2 1024 0.05");
}

TEST(MpiJob, MeasuresAreMetricsWithValues) {
  EXPECT_EQ(measures_in("shared_bytes 4096 memory_bytes 1.5e+06"),
            (Measures{{"shared_bytes", 4096}, {"memory_bytes", 1.5e6}}));
}

TEST(MpiJob, MeasuresThatMakeNoSenseAreRefused) {
  for (const char* line : {"", "ns_p50", "ns_p50 x", "ns_p50 0", "ns_p50 -1", "ns_p50 nan", "ns_p50 1 GB/s"}) {
    EXPECT_THROW(measures_in(line), std::runtime_error) << line;
  }
}

}  // namespace
}  // namespace wherry::bench::mpi
