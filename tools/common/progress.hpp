// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace wherry::tools {

/// A progress line at the bottom of a terminal, redrawn ten times a second, with messages above it. If standard error
/// is not a terminal, only the messages are printed.
class Progress {
 public:
  enum class Show { if_terminal, never };

  /// @param text  returns the current line; called from the drawing thread
  Progress(Show show, std::function<std::string()> text);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { stop(); }

  /// Prints a line to standard error, above the progress line. May be called from any thread.
  void message(const std::string& line);
  /// Removes the progress line. Messages are still printed.
  void stop();

  /// "[#####     ]  50%"; empty if the total is unknown (0).
  static std::string bar(std::uint64_t done, std::uint64_t total);

 private:
  void draw_until_stopped();
  void erase_line();

  std::function<std::string()> text_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  bool drawn_ = false;
  std::thread thread_;
};

}  // namespace wherry::tools
