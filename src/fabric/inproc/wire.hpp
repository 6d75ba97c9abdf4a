// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/inproc/put_queue.hpp"

namespace wherry::fabric::inproc {

/// The thread that plays the network for all put-only connections of this process. It starts with the first put and
/// sleeps while no queue has anything queued. A forked child has none: the put-only form does not survive a fork.
class Wire {
 public:
  static Wire& instance();

  /// `queue` has something queued, and had nothing before.
  void take(std::shared_ptr<PutQueue> queue);

 private:
  Wire();
  void carry();
  void wait_for_news(PutQueue::Clock::time_point next);

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::shared_ptr<PutQueue>> incoming_;
  std::vector<std::shared_ptr<PutQueue>> busy_;  // the thread's own
};

}  // namespace wherry::fabric::inproc
