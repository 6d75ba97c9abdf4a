// SPDX-License-Identifier: Apache-2.0
// What the fault tests share: streams between processes, and a victim with its killer.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"
#include "base/open_descriptors.hpp"
#include "tests/common/pattern.hpp"

namespace wherry::fault {

using namespace std::chrono_literals;

/// Longer than the test's watchdog allows: it never passes.
inline constexpr std::chrono::seconds kTimeout{3600};

/// What survivor, victim and killer know of each other.
struct Scene {
  std::atomic<std::uint64_t> accepted_bytes{0};  ///< bytes that the victim's sends have accepted
  std::atomic<bool> ready{false};                ///< the victim has come to where it is to be killed
  std::atomic<std::int64_t> killed_at{0};        ///< steady_ns()
};

class FaultTest : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string address() { return "wherry+shm://*:*"; }

  /// For the next round.
  void reset_scene();
  /// A process that kills `victim` once it is ready and `delay` has passed, while this one is blocked.
  [[nodiscard]] Child killer_of(const Child& victim, std::chrono::microseconds delay);
  /// The same by this process.
  void kill_now(const Child& victim);
  /// Notes how long after the kill this side knew.
  void noticed();
  /// Prints what was noted: a measurement, not a test.
  void TearDown() override;

  const Pattern pattern_{11};
  SharedValue<Scene> scene_;

 private:
  std::vector<double> noticed_ms_;
};

/// Receives until it fails or ends, and expects `pattern` from `position` on. Sets `received`.
Result receive_to_the_last(Stream& stream, const Pattern& pattern, std::uint64_t& received);

}  // namespace wherry::fault
