// SPDX-License-Identifier: Apache-2.0
// The thread that serves all connections of this process to other hosts. It is needed because a peer's writes arrive
// only while a thread reads the completion queue. It sleeps on descriptors, for at most one second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/unique_fd.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/ofi/endpoint.hpp"

namespace wherry::fabric::ofi {

class Link;

/// An object that the service drives. The service calls it with Service::mutex held.
class Served {
 public:
  Served() = default;
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  virtual ~Served() = default;

  /// Called when `descriptor` is readable, or was. Returns true if there may be more to do, which no descriptor shows.
  virtual bool serve(int descriptor) = 0;
  /// Called once for each descriptor about once a second, and after nudge(), to notice what no descriptor reports.
  /// `drives`: also drive the provider. Returns as serve().
  virtual bool look(bool /*drives*/) { return false; }
};

/// Lock order: the service's mutex before that of a link.
class Service {
 public:
  /// Returns the service of this process; a forked child has its own. Never destroyed. Throws Error.
  static Service& instance();

  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Held while anything is served. While another thread holds it, the service serves no connection of this process.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  using Clock = std::chrono::steady_clock;

  /// Makes the service look at everything that it serves. Needs no mutex.
  void nudge() noexcept;
  /// Ends `leave_alone` of a descriptor. Needs no mutex.
  void resume(int descriptor);

  /// Whether the service is told of a descriptor that it watches. Needs no mutex.
  void report(int descriptor, bool on) const noexcept;

  // The following must be called with the mutex held.
  [[nodiscard]] Domain& domain() { return domain_; }
  /// Serves `served` when `descriptor` is readable, and keeps it alive, until `unwatch`. Throws Error(ENOSPC, ENOMEM).
  void watch(int descriptor, std::shared_ptr<Served> served);
  void unwatch(int descriptor) noexcept;
  /// Called by what serves the descriptor. The service ignores the descriptor until that time or until `resume`, and
  /// then serves it.
  void leave_alone(int descriptor, Clock::time_point until);
  /// Assigns a connection request (Knock) with that token to a link.
  void expect(const Token& token, std::shared_ptr<Link> link) { expected_.emplace(token, std::move(link)); }
  void expect_no_longer(const Token& token) noexcept { expected_.erase(token); }
  /// Assigns the events of an endpoint to a link, by the context that the endpoint was created with.
  void add(void* context, std::shared_ptr<Link> link) { links_.emplace(context, std::move(link)); }
  void remove(void* context) noexcept { links_.erase(context); }

 private:
  struct Maker;

  Service();
  ~Service() = default;

  static Maker& maker();

  [[noreturn]] void run();
  [[nodiscard]] int sleep_ms(Clock::time_point now) const;
  bool serve_news();
  void dispatch(Domain::News news);
  void add_to_epoll(int descriptor, std::uint32_t events);
  bool serve(int descriptor);
  bool serve_again(Clock::time_point now);
  bool look_at_all(bool drives);
  void end_strangers();

  std::mutex mutex_;
  Domain domain_;
  UniqueFd epoll_;
  EventBell nudge_;
  std::atomic<bool> nudged_{false};                 // to look at all
  std::mutex resumed_mutex_;                        // nothing else is taken while it is held
  std::vector<int> resumed_;                        // descriptors
  Clock::time_point next_look_{};                   // at all
  int next_driven_ = 0;                             // the descriptor whose turn it is
  bool is_called_ = false;                          // since the last end_strangers(), or it has left some
  std::map<int, std::shared_ptr<Served>> watched_;  // by descriptor
  std::map<int, Clock::time_point> left_alone_;     // by descriptor: until when epoll does not report it
  std::map<Token, std::shared_ptr<Link>> expected_;
  std::map<void*, std::shared_ptr<Link>> links_;
};

}  // namespace wherry::fabric::ofi
