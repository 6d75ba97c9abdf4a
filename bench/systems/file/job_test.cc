// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace wherry::bench::file {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Job kJob{.files = "/tmp/a b/out",
               .writes = true,
               .random = true,
               .used = true,
               .synced = true,
               .unit = 4096,
               .bytes = 1 << 20,
               .processes = 48,
               .threads = true,
               .warm_ups = 3,
               .seconds = 0.25,
               .salt = UINT64_MAX,
               .check = true};

TEST(FileJob, IsReadAsItWasWritten) {
  const Job job = job_in(to_line(kJob));
  EXPECT_EQ(job.files, kJob.files);
  EXPECT_TRUE(job.writes && job.random && job.used && job.synced && job.check);
  EXPECT_EQ(job.unit, 4096U);
  EXPECT_EQ(job.bytes, 1U << 20);
  EXPECT_EQ(job.processes, 48U);
  EXPECT_EQ(job.warm_ups, 3U);
  EXPECT_EQ(job.seconds, 0.25);
  EXPECT_EQ(job.salt, UINT64_MAX);
  const Job plain = job_in(to_line({.files = "x", .unit = 8, .bytes = 8}));
  EXPECT_FALSE(plain.writes || plain.random || plain.used || plain.synced || plain.check);
}

TEST(FileJob, AFindingIsReadAsItWasWritten) {
  const Finding finding =
      finding_in(to_line({.seconds = 0.5,
                          .cpu_seconds = 0.25,
                          .reaped_cpu_seconds = 0.75,
                          .useful_bytes = 1000,
                          .ways = {{.place = 3, .host = {.calls = 4, .explored = 5}, .kernel = {.estimate_ns = 6}}}}));
  ASSERT_EQ(finding.ways.size(), 1U);
  EXPECT_EQ(finding.ways[0].place, 3U);
  EXPECT_EQ(finding.ways[0].host.calls, 4U);
  EXPECT_EQ(finding.ways[0].host.explored, 5U);
  EXPECT_EQ(finding.ways[0].kernel.estimate_ns, 6U);
  EXPECT_EQ(finding.seconds, 0.5);
  EXPECT_EQ(finding.cpu_seconds, 0.25);
  EXPECT_EQ(finding.reaped_cpu_seconds, 0.75);
  EXPECT_EQ(finding.useful_bytes, 1000U);
}

TEST(FileJob, WhatMakesNoSenseIsRefused) {
  for (const char* line : {"", "{}", "soon"}) {
    EXPECT_THROW(job_in(line), std::runtime_error) << line;
    EXPECT_THROW(finding_in(line), std::runtime_error) << line;
  }
  Job job = kJob;
  job.unit = 4096 + 8;
  EXPECT_THAT([&] { (void)job_in(to_line(job)); }, ThrowsMessage<std::runtime_error>(HasSubstr("not a job")));
  EXPECT_THROW(finding_in(to_line(Finding{.useful_bytes = 1, .ways = {{.place = layout::kTransferClasses}}})),
               std::runtime_error);
  job = kJob;
  job.processes = 0;
  EXPECT_THROW(job_in(to_line(job)), std::runtime_error);
  EXPECT_THROW(finding_in(to_line(Finding{.seconds = 1})), std::runtime_error);
  EXPECT_THROW(finding_in(to_line(Finding{.seconds = -1, .useful_bytes = 1})), std::runtime_error);
}

}  // namespace
}  // namespace wherry::bench::file
