// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace wherry::bench::root {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(RootJob, IsReadAsItWasWritten) {
  const Job job = job_in(to_line({.figure = Figure::merge,
                                  .system = "hadd",
                                  .tree = Tree::higgs,
                                  .threads = true,
                                  .workers = 60,
                                  .files = 100,
                                  .size = 1'960'000}));
  EXPECT_EQ(job.figure, Figure::merge);
  EXPECT_EQ(job.system, "hadd");
  EXPECT_EQ(job.tree, Tree::higgs);
  EXPECT_TRUE(job.threads);
  EXPECT_EQ(job.workers, 60U);
  EXPECT_EQ(job.files, 100U);
  EXPECT_EQ(job.size, 1'960'000U);
}

TEST(RootJob, AFindingIsReadAsItWasWritten) {
  const Finding finding = finding_in(to_line({.seconds = 0.5,
                                              .server_cpu_seconds = 0.25,
                                              .worker_cpu_seconds = 0.75,
                                              .reaped_cpu_seconds = 1.5,
                                              .useful_bytes = 1000,
                                              .wire_bytes = 2000,
                                              .memory_bytes = 3000}));
  EXPECT_EQ(finding.seconds, 0.5);
  EXPECT_EQ(finding.server_cpu_seconds, 0.25);
  EXPECT_EQ(finding.worker_cpu_seconds, 0.75);
  EXPECT_EQ(finding.reaped_cpu_seconds, 1.5);
  EXPECT_EQ(finding.useful_bytes, 1000U);
  EXPECT_EQ(finding.wire_bytes, 2000U);
  EXPECT_EQ(finding.memory_bytes, 3000U);
}

TEST(RootJob, WhatMakesNoSenseIsRefused) {
  for (const char* line : {"", "{}", "soon", R"({"figure": "fly"})"}) {
    EXPECT_THROW(job_in(line), std::runtime_error) << line;
    EXPECT_THROW(finding_in(line), std::runtime_error) << line;
  }
  EXPECT_THROW(job_in(to_line(Job{.system = "hadd", .workers = 0, .size = 1})), std::runtime_error);
  EXPECT_THROW(finding_in(to_line(Finding{.seconds = 0, .useful_bytes = 1})), std::runtime_error);
  EXPECT_THROW(finding_in(to_line(Finding{.seconds = 1, .server_cpu_seconds = -1, .useful_bytes = 1})),
               std::runtime_error);
  EXPECT_THAT([] { (void)job_in(R"({"figure": "fly"})"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no figure 'fly'")));
}

}  // namespace
}  // namespace wherry::bench::root
