// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace wherry::bench::root {

/// The processes of a sample. Those left at the end are killed and reaped.
class WorkerGroup {
 public:
  WorkerGroup() = default;
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Runs `body` in a new process, which ends with status 0 unless it throws. `name` is what errors call it.
  pid_t start(std::string name, const std::function<void()>& body);
  /// Waits until `met`, which is asked now and then. Throws std::runtime_error when a process ends before.
  void wait_until(const std::function<bool()>& met);
  /// Waits until all have ended; throws std::runtime_error if one fails.
  void wait();

 private:
  struct Member {
    std::string name;
    pid_t pid = -1;  // -1: reaped
  };
  /// Throws if it has failed.
  static bool ended(Member& member);

  std::vector<Member> members_;
};

}  // namespace wherry::bench::root
