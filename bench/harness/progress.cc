// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/clock.hpp"

namespace wherry::bench {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
/// Between two lines where there is no terminal.
constexpr std::uint64_t kPause = 20 * kSecond;

std::string about(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::ceil(seconds));
  return fmt::format("{:.0f} min", std::ceil(seconds / 60));
}

}  // namespace

Progress::Progress(std::size_t steps)
    : steps_(steps), started_(monotonic_ns()), said_(started_), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

std::string Progress::text(std::string_view what) const {
  const std::size_t steps = steps_ - skipped_;
  std::string line = fmt::format("{} of {}: {}", taken_, steps, what);
  // The first steps say little about the rest.
  if (taken_ > 10) {
    const double each = static_cast<double>(monotonic_ns() - started_) / 1e9 / static_cast<double>(taken_ - 1);
    line += ", about " + about(each * static_cast<double>(steps - std::min(steps, taken_ - 1))) + " left";
  }
  return line;
}

void Progress::step(std::string_view what) {
  ++taken_;
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text(what));
    std::fflush(stderr);
  } else if (monotonic_ns() - said_ > kPause) {
    said_ = monotonic_ns();
    fmt::print(stderr, "{}\n", text(what));
  }
}

void Progress::extra_step(std::string_view what) {
  ++steps_;
  step(what);
}

void Progress::skip(std::size_t steps) { skipped_ += steps; }

void Progress::clear() {
  if (terminal_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

}  // namespace wherry::bench
