// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <string>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/found_once.hpp"
#include "base/not_cancelled.hpp"

namespace wherry::log {
namespace {

constexpr std::array<std::string_view, 4> kNames{"error", "warning", "info", "debug"};

Level configured_level() noexcept {
  try {
    const std::string name = config::text(config::Key::log);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (name == kNames[i]) return static_cast<Level>(i);
    }
  } catch (const std::exception&) {
    // Out of memory: fall through to the default.
  }
  return Level::warning;
}

std::atomic<Level>& level_in_force() noexcept {
  static constinit FoundOnce<std::atomic<Level>> level;
  return level.get([] { return configured_level(); });
}

std::string node() {
  try {
    return std::to_string(own_node());
  } catch (const Error&) {
    return config::text(config::Key::node);  // not a number, but the line must still be written
  }
}

}  // namespace

Level level() noexcept { return level_in_force().load(std::memory_order_relaxed); }

void set_level(Level level) noexcept { level_in_force().store(level, std::memory_order_relaxed); }

void write(Level level, std::string_view text) noexcept {
  if (!enabled(level)) return;
  const int saved_errno = errno;
  const NotCancelled here;
  try {
    std::string line = "wherry[" + std::to_string(getpid()) + "] node " + node() + " ";
    line.append(kNames[static_cast<std::size_t>(level)]).append(": ").append(text).append("\n");
    // A failure is ignored: there is nowhere to report it.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::exception&) {
    // Out of memory: losing the line is better than losing the process.
  }
  errno = saved_errno;
}

}  // namespace wherry::log
