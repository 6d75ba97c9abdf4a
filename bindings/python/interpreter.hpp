// SPDX-License-Identifier: Apache-2.0
// The interpreter's lock (GIL), its signal handlers, its end, and forks, as every call that may block needs them.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include <wherry/wherry.hpp>

namespace wherry::python {

/// Gives the GIL up for its lifetime. The destructor takes it back; once the interpreter is ending it does not return
/// in any thread but the one that ends it, because CPython would unwind the thread through C++ frames (pthread_exit).
class Unlocked {
 public:
  Unlocked() noexcept;
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// When a call is to give up. From a timeout of Python's: seconds, or None for no limit.
class Deadline {
 public:
  /// Throws ValueError if it is negative or no number.
  explicit Deadline(std::optional<double> seconds);
  [[nodiscard]] bool has_passed() const noexcept;
  /// How long to wait before signal handlers run: 50 ms at most.
  [[nodiscard]] std::chrono::nanoseconds slice() const noexcept;
  /// What is left, without the limit of a slice. Empty: no limit.
  [[nodiscard]] Timeout rest() const noexcept;

 private:
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// Runs Python's signal handlers; throws what they raise, such as KeyboardInterrupt. Needs the GIL.
void run_signal_handlers();
/// True in the thread that runs signal handlers. Needs no GIL.
[[nodiscard]] bool is_main_thread() noexcept;
/// Counts the forks that made this process: an object of another number was inherited.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

/// Calls `attempt(slice)` without the GIL until its result is no timeout or the deadline has passed. Signal handlers
/// run in between. `attempt` does not throw.
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

/// One call at a time. Two threads of Python's may share an object; Wherry's own may not be used by two at once.
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

/// Sets up what follows the end of the interpreter and forks. Once.
void watch_interpreter(nanobind::module_& module);

}  // namespace wherry::python
