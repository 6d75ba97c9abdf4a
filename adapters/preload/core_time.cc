// SPDX-License-Identifier: Apache-2.0
#include "core_time.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/not_cancelled.hpp"
#include "direct_words.hpp"
#include "file/mapped/signals_blocked.hpp"
#include "next.hpp"

namespace wherry::preload {
namespace {

/// Pause between two looks of a thread.
constexpr std::uint32_t kPauseOfLooksMs = 5;

struct Seen {
  bool ever = false;
  std::uint32_t at_ms = 0;
  CoreTime total;
};
constinit thread_local Seen seen __attribute__((tls_model("initial-exec")));

/// The kernel's own count of what a thread has run is as old as its last tick.
std::uint64_t ran_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Reads the second number of /proc/thread-self/schedstat.
std::optional<std::uint64_t> waited_ns() noexcept {
  // A handler may leave by a jump, and the file would stay open.
  const file::mapped::SignalsBlocked blocked;
  const NotCancelled not_cancelled;
  const int file = WHERRY_NEXT(open, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 96> text{};
  // Not by one of the standard numbers, which other threads of the program may use.
  const ssize_t length = file > STDERR_FILENO ? WHERRY_NEXT(pread, file, text.data(), text.size(), 0) : -1;
  WHERRY_NEXT(close, file);
  if (length <= 0) return std::nullopt;
  const char* const end = text.data() + length;
  std::uint64_t number = 0;
  auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr == end) return std::nullopt;
  parsed = std::from_chars(parsed.ptr + 1, end, number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

/// A forked child counts from 0 again.
std::uint64_t more(std::uint64_t now, std::uint64_t before) { return now >= before ? now - before : now; }

}  // namespace

std::optional<CoreTime> more_core_time() noexcept {
  const std::uint32_t now = now_ms();
  if (seen.ever && now - seen.at_ms < kPauseOfLooksMs) return std::nullopt;
  const auto waited = waited_ns();
  const CoreTime before = seen.total;
  seen = {.ever = true, .at_ms = now, .total = {.ran_ns = ran_ns(), .waited_ns = waited.value_or(before.waited_ns)}};
  if (!waited) return std::nullopt;
  return CoreTime{.ran_ns = more(seen.total.ran_ns, before.ran_ns),
                  .waited_ns = more(seen.total.waited_ns, before.waited_ns)};
}

}  // namespace wherry::preload
