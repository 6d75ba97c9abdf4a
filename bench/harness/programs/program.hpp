// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::bench {

/// A peer's program while it runs (README.md in this folder says what it is told and answers). One thread uses it.
/// Everything throws std::runtime_error, with what the program said last, when the program does not do its part.
class Program {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts it and waits until it has introduced itself.
  Program(std::vector<std::string> command, Clock::time_point deadline);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// Asks the program to end, and ends it when it does not, or has failed before.
  ~Program();

  void tell(std::string_view line);
  /// What follows `word` on the next line that the program writes.
  std::string hear(std::string_view word, Clock::time_point deadline);

  /// Its processes that take part in a sample.
  [[nodiscard]] const std::vector<pid_t>& processes() const { return processes_; }
  [[nodiscard]] const std::string& version() const { return version_; }

  /// Between samples it stands still: others are measured then.
  void pause();
  void resume();

 private:
  std::string read_line(Clock::time_point deadline);
  bool read_more(Clock::time_point deadline);
  [[nodiscard]] std::string last_words() const;
  bool ended_within(std::chrono::milliseconds time);
  void close_all();
  void introduce(Clock::time_point deadline);
  [[noreturn]] void fail(const std::string& what);

  std::string path_;
  int input_ = -1;
  int output_ = -1;
  int errors_ = -1;
  pid_t supervisor_ = -1;
  pid_t owner_ = -1;
  bool failed_ = false;
  std::string unread_;
  std::vector<pid_t> processes_;
  std::string version_;
};

}  // namespace wherry::bench
