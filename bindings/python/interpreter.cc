// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/interpreter.hpp"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "bindings/python/errors.hpp"

namespace nb = nanobind;

namespace wherry::python {
namespace {

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
/// Longer timeouts are without limit. About a century, far below the range of 64-bit nanoseconds.
constexpr double kLongestSeconds = 3e9;

std::atomic<std::uint32_t> forks{0};

/// Stops threads from taking the GIL while the interpreter ends.
class Gate {
 public:
  void enter(PyThreadState* state) noexcept {
    // GATE full barrier: pairs with that of close; either this thread sees the gate closed, or close sees this thread.
    entering_.fetch_add(1, std::memory_order_seq_cst);
    if (closed_.load(std::memory_order_seq_cst) && !::pthread_equal(closer_, ::pthread_self())) {
      entering_.fetch_sub(1, std::memory_order_seq_cst);
      while (true) ::pause();
    }
    PyEval_RestoreThread(state);
    entering_.fetch_sub(1, std::memory_order_seq_cst);
  }
  /// Waits for the threads that are about to take the GIL. They get it now, before the interpreter refuses it.
  void close() {
    closer_ = ::pthread_self();
    // GATE full barrier: pairs with that of enter.
    closed_.store(true, std::memory_order_seq_cst);
    while (entering_.load(std::memory_order_seq_cst) != 0) {
      PyThreadState* const state = PyEval_SaveThread();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      PyEval_RestoreThread(state);
    }
  }
  /// For a forked child, which has only the forking thread.
  void reset() noexcept { entering_.store(0, std::memory_order_seq_cst); }

 private:
  std::atomic<int> entering_{0};
  std::atomic<bool> closed_{false};
  pthread_t closer_{};
};

Gate gate;

}  // namespace

Unlocked::Unlocked() noexcept : state_(PyEval_SaveThread()) {}
Unlocked::~Unlocked() { gate.enter(state_); }

Deadline::Deadline(std::optional<double> seconds) {
  if (!seconds) return;
  if (std::isnan(*seconds) || *seconds < 0) throw nb::value_error("a timeout is 0 or more seconds, or None");
  if (*seconds > kLongestSeconds) return;
  end_ = std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*seconds));
}

bool Deadline::has_passed() const noexcept { return end_ && std::chrono::steady_clock::now() >= *end_; }

std::chrono::nanoseconds Deadline::slice() const noexcept {
  if (!end_) return kSlice;
  const std::chrono::nanoseconds left = *end_ - std::chrono::steady_clock::now();
  return std::clamp(left, std::chrono::nanoseconds(0), kSlice);
}

Timeout Deadline::remaining() const noexcept {
  if (!end_) return {};
  return std::max(std::chrono::nanoseconds(*end_ - std::chrono::steady_clock::now()), std::chrono::nanoseconds(0));
}

void run_signal_handlers() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

bool is_main_thread() noexcept { return ::gettid() == ::getpid(); }

std::uint32_t fork_generation() noexcept { return forks.load(std::memory_order_relaxed); }

bool wait_until_readable(int descriptor, const Deadline& deadline) {
  const Result result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(slice).count();
    return ::poll(&entry, 1, static_cast<int>(milliseconds)) > 0 ? Result::moved(1) : Result::failure(ETIMEDOUT);
  });
  return result.ok();
}

bool Turn::take(const Deadline& deadline) {
  if (mutex_.try_lock()) return true;
  const Result result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
    return mutex_.try_lock_for(slice) ? Result::moved(1) : Result::failure(ETIMEDOUT);
  });
  return result.ok();
}

Taken take_turn(Turn& turn, const Deadline& deadline, const char* operation) {
  if (!turn.take(deadline)) {
    raise_error({.error = ETIMEDOUT, .operation = operation, .advice = "another thread uses the same object"});
  }
  return Taken(turn);
}

void watch_interpreter(nb::module_& module) {
  (void)::pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    gate.reset();
  });
  module.def("_close_gate", [] { gate.close(); });
  nb::module_::import_("atexit").attr("register")(module.attr("_close_gate"));
}

}  // namespace wherry::python
