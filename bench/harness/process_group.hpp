// SPDX-License-Identifier: Apache-2.0
//
// The processes of one sample. They are ended together: a benchmark process that is left behind spins, and spoils every
// measurement after it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace wherry::bench {

class ProcessGroup {
 public:
  ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  /// Kills and reaps those that are left.
  ~ProcessGroup();

  /// Runs `body` in a new process, which ends with the exit status it returns. `name` is what errors call it.
  void start(std::string name, const std::function<int()>& body);

  /// Waits until all have ended; empty if all did with status 0. When one does not, or time is up, kills the others
  /// and returns which and why.
  std::string wait(std::chrono::milliseconds timeout);

 private:
  struct Member {
    std::string name;
    pid_t pid = -1;
    int descriptor = -1;  // Readable when the process has ended.
  };

  std::string ended(Member& member);
  void kill_all();

  pid_t group_ = 0;
  std::vector<Member> members_;
};

}  // namespace wherry::bench
