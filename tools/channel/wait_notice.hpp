// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace wherry::tools {

/// Tells the person at a terminal what a program waits for, once, after 2 s. Prints nothing where standard error is no
/// terminal.
class WaitNotice {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param program  as the line names it, such as "wherry ship"
  WaitNotice(std::string program, std::string address);

  /// When `print_if_due` is to be called next: the last moment of the clock once it has printed.
  [[nodiscard]] Clock::time_point due() const { return due_; }
  void print_if_due();

 private:
  std::string program_;
  std::string address_;
  Clock::time_point due_;
};

}  // namespace wherry::tools
