// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace wherry::tools {

/// One line at the bottom of a terminal that is drawn anew ten times a second, and messages above it. Where standard
/// error is no terminal there is no line, only messages.
class Progress {
 public:
  enum class Show { if_terminal, never };

  /// @param text  what the line says now; called from the drawing thread
  Progress(Show show, std::function<std::string()> text);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { stop(); }

  /// Prints a line on standard error, above the progress line. From any thread.
  void message(const std::string& line);
  /// Removes the progress line. Messages still work.
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
