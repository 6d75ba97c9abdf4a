// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace wherry::fabric::inproc {

/// What a wire's thread does something for.
class Carried {
 public:
  using Clock = std::chrono::steady_clock;

  Carried() = default;
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;
  virtual ~Carried() = default;
  /// Does what is due. Returns when there is more to do, or nothing when there is none.
  virtual std::optional<Clock::time_point> run() = 0;
};

/// The thread that plays the network for connections of this process. It starts with the first put and sleeps while
/// nothing is queued. A forked child has none: the forms that need it do not survive a fork.
class Wire {
 public:
  /// Of the put-only form, and of the form that behaves as a network.
  static Wire& of_puts();
  static Wire& of_networks();

  /// There is something to do for it.
  void take(std::shared_ptr<Carried> carried);

 private:
  Wire();
  void carry();
  void wait_for_news(Carried::Clock::time_point next);

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::shared_ptr<Carried>> incoming_;
  struct Busy {
    std::shared_ptr<Carried> carried;
    Carried::Clock::time_point next;
  };
  std::vector<Busy> busy_;  // the thread's own
};

}  // namespace wherry::fabric::inproc
