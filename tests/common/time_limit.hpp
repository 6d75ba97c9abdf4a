// SPDX-License-Identifier: Apache-2.0
// For tests in which two threads must run at the same moment. An idle machine runs all their rounds within the limit.
// On a busy one each round waits for the scheduler, and finds nothing: there the limit ends the test. `make soak` lifts
// it.
#pragma once

#include <chrono>

#include "tests/common/soak.hpp"

namespace wherry {

class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::seconds time) : end_(std::chrono::steady_clock::now() + time) {}

  [[nodiscard]] bool over() const { return !soaking_ && std::chrono::steady_clock::now() > end_; }

 private:
  bool soaking_ = soaking();
  std::chrono::steady_clock::time_point end_;
};

}  // namespace wherry
