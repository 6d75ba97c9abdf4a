// SPDX-License-Identifier: Apache-2.0
// Every test has its own ports: a job of its own. In a common one, a second connect to the port of a listener that is
// gone meets the listener of another test that runs at the same time, and takes its connector's place there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace wherry {
namespace {

class OwnJob final : public testing::Environment {
 public:
  void SetUp() override { ::setenv("WHERRY_JOB", ("test-" + std::to_string(::getpid())).c_str(), 1); }
};

[[maybe_unused]] const auto* const own_job = testing::AddGlobalTestEnvironment(new OwnJob);

}  // namespace
}  // namespace wherry
