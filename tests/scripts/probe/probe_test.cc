// SPDX-License-Identifier: Apache-2.0
// Tests that break the rules of a shared process, for test_shared_process.py. None runs unless it is asked for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace {

TEST(Probe, DISABLED_Hangs) {
  for (;;) ::pause();
}

TEST(Probe, DISABLED_LeavesAThread) {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
}

TEST(Probe, DISABLED_JoinsItsThread) {
  std::thread([] {}).join();
}

}  // namespace
