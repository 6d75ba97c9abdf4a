// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/inproc/lane.hpp"

namespace wherry::fabric::inproc {

/// The thread that plays the network for all put-only connections of this process. It starts with the first put and
/// sleeps while no lane has anything queued. A forked child has none: the put-only form does not survive a fork.
class Wire {
 public:
  static Wire& instance();

  /// `lane` has something queued, and had nothing before.
  void take(std::shared_ptr<Lane> lane);

 private:
  Wire();
  void carry();
  void wait_for_news(Lane::Clock::time_point next);

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::shared_ptr<Lane>> incoming_;
  std::vector<std::shared_ptr<Lane>> busy_;  // the thread's own
};

}  // namespace wherry::fabric::inproc
