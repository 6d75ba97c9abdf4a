// SPDX-License-Identifier: Apache-2.0
// The threads that simulate networks for connections within a process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace wherry::fabric::inproc {

/// An object that the thread of a Wire drives.
class Carried {
 public:
  using Clock = std::chrono::steady_clock;

  Carried() = default;
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;
  virtual ~Carried() = default;
  /// Does what is due. Returns when to call it again; empty if there is nothing more to do.
  virtual std::optional<Clock::time_point> run() = 0;
};

/// A thread that simulates the network. It starts with the first put, and sleeps while nothing is queued. A forked
/// child has none, so the forms that need it do not survive a fork.
class Wire {
 public:
  /// The wires of the put form and of the network form.
  static Wire& of_puts();
  static Wire& of_networks();

  /// Wakes the thread, because `carried` has something to do.
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
  std::vector<Busy> busy_;  // used only by the thread
};

}  // namespace wherry::fabric::inproc
