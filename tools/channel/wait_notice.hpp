// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace wherry::tools {

/// Prints to a terminal what a program waits for, once, after 2 s. Prints nothing if standard error is not a terminal.
class WaitNotice {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param program  the name in the line, such as "wherry ship"
  WaitNotice(std::string program, std::string address);

  /// The time for the next call of `print_if_due`; the clock's maximum once it has printed.
  [[nodiscard]] Clock::time_point due() const { return due_; }
  void print_if_due();

 private:
  std::string program_;
  std::string address_;
  Clock::time_point due_;
};

}  // namespace wherry::tools
