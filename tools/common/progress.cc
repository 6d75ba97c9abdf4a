// SPDX-License-Identifier: Apache-2.0
#include "common/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace wherry::tools {
namespace {

using namespace std::chrono_literals;
constexpr auto kPeriod = 100ms;
constexpr std::size_t kBarWidth = 24;

// Cuts the line to the terminal's width: a line that wraps cannot be erased.
std::string fit_terminal(std::string line) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
    line.resize(std::min<std::size_t>(line.size(), size.ws_col - 1U));
  }
  return line;
}

}  // namespace

Progress::Progress(Show show, std::function<std::string()> text) : text_(std::move(text)) {
  if (show == Show::if_terminal && ::isatty(STDERR_FILENO) == 1)
    thread_ = std::thread([this] { draw_until_stopped(); });
}

void Progress::message(const std::string& line) {
  const std::lock_guard lock(mutex_);
  erase_line();
  std::fputs((line + "\n").c_str(), stderr);
}

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Progress::bar(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return {};
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto marks = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
  return fmt::format("[{}{}] {:3.0f}%", std::string(marks, '#'), std::string(kBarWidth - marks, ' '), part * 100);
}

void Progress::draw_until_stopped() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kPeriod, [this] { return stopped_; })) {
    const std::string line = fit_terminal(text_());
    erase_line();
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  }
  erase_line();
}

void Progress::erase_line() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace wherry::tools
