// SPDX-License-Identifier: Apache-2.0
// Ends a test that stands still, and says where each side stood: a lost wake-up shows as a hang and as nothing else.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/side.hpp"

namespace wherry::stress {

class Watchdog {
 public:
  struct Watched {
    std::string name;
    const Progress* progress;
  };

  /// Aborts the process, after `last_words`, when no side has moved for a minute.
  Watchdog(std::vector<Watched> sides, std::function<void()> last_words);
  ~Watchdog();

 private:
  void watch();
  [[nodiscard]] std::uint64_t total() const;
  void dump() const;

  std::vector<Watched> sides_;
  std::function<void()> last_words_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace wherry::stress
