// SPDX-License-Identifier: Apache-2.0
// Support for calls that may block: the interpreter's lock (GIL), its signal handlers, its end, and forks.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include <wherry/wherry.hpp>

namespace wherry::python {

/// Releases the GIL for its lifetime. The destructor takes the GIL again. While the interpreter ends, the destructor
/// returns only in the thread that ends it: CPython would unwind any other thread through C++ frames (pthread_exit).
class Unlocked {
 public:
  Unlocked() noexcept;
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// The end of a call's timeout. Made from a timeout of Python: seconds, or None for no limit.
class Deadline {
 public:
  /// Throws ValueError if the timeout is negative or not a number.
  explicit Deadline(std::optional<double> seconds);
  [[nodiscard]] bool has_passed() const noexcept;
  /// The time to wait before signal handlers run: at most 50 ms.
  [[nodiscard]] std::chrono::nanoseconds slice() const noexcept;
  /// The remaining time, without the limit of a slice. Empty: no limit.
  [[nodiscard]] Timeout remaining() const noexcept;

 private:
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// Runs Python's signal handlers; throws the exceptions that they raise, such as KeyboardInterrupt. Needs the GIL.
void run_signal_handlers();
/// True in the thread that runs signal handlers. Needs no GIL.
[[nodiscard]] bool is_main_thread() noexcept;
/// The number of forks that led to this process. An object with another number was inherited.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

/// Calls `attempt(slice)` without the GIL until its result is not a timeout, or the deadline has passed. Runs signal
/// handlers in between. `attempt` must not throw.
template <class Attempt>
Result in_slices(const Deadline& deadline, Attempt attempt) {
  while (true) {
    Result result;
    {
      const Unlocked unlocked;
      do {
        result = attempt(deadline.slice());
      } while (result.failed() && result.error == ETIMEDOUT && !is_main_thread() && !deadline.has_passed());
    }
    if (!result.failed() || result.error != ETIMEDOUT) return result;
    run_signal_handlers();
    if (deadline.has_passed()) return result;
  }
}

/// Waits until a descriptor is readable. False: the deadline has passed.
bool wait_until_readable(int descriptor, const Deadline& deadline);

/// Serializes calls. Threads of Python may share an object; the C++ library's objects may not be used by two threads at
/// once.
class Turn {
 public:
  /// Waits without the GIL. False: the deadline has passed.
  bool take(const Deadline& deadline);
  bool try_take() noexcept { return mutex_.try_lock(); }
  void give() noexcept { mutex_.unlock(); }

 private:
  std::timed_mutex mutex_;
};

/// Holds a turn.
class Taken {
 public:
  Taken() noexcept = default;
  explicit Taken(Turn& turn) noexcept : turn_(&turn) {}
  Taken(Taken&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
  Taken& operator=(Taken&&) = delete;
  Taken(const Taken&) = delete;
  ~Taken() {
    if (turn_ != nullptr) turn_->give();
  }

 private:
  Turn* turn_ = nullptr;
};

/// Throws TimeoutError unless the turn comes in time.
[[nodiscard]] Taken take_turn(Turn& turn, const Deadline& deadline, const char* operation);

/// Installs the handlers for the end of the interpreter and for forks. Call it once.
void watch_interpreter(nanobind::module_& module);

}  // namespace wherry::python
