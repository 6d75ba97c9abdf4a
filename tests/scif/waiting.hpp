// SPDX-License-Identifier: Apache-2.0
// A call that waits while the test goes on.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include "base/child_process.hpp"

namespace wherry::scif_test {

/// A call of another thread's.
class Waiting {
 public:
  template <class Call>
  explicit Waiting(Call call)
      : thread_([this, call] {
          errno = 0;
          thread_id_ = ::gettid();
          result = call();
          error = errno;
          ended_at = steady_ns();
          done_ = true;
        }) {}
  ~Waiting() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Whether it goes on waiting, as far as one can tell: it is found asleep again and again. A thread that has no
  /// processor has perhaps not begun its call.
  [[nodiscard]] bool waits() const {
    for (int asleep = 0; asleep < 10 && !done_;) {
      ::usleep(1000);
      if (sleeps()) ++asleep;
    }
    return !done_;
  }

  int result = 0;
  int error = 0;
  std::int64_t ended_at = 0;

 private:
  [[nodiscard]] bool sleeps() const {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread_id_) + "/stat");
    std::string id;
    std::string name;
    char state = 0;
    stat >> id >> name >> state;
    return state == 'S';
  }

  std::atomic<bool> done_{false};
  std::atomic<pid_t> thread_id_{0};
  std::thread thread_;
};

}  // namespace wherry::scif_test
