// SPDX-License-Identifier: Apache-2.0
// The thread that serves all connections to other hosts of this process: a peer's writes arrive only while a thread
// reads the completion queue. It sleeps on descriptors, and never longer than a second.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/unique_fd.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/ofi/endpoint.hpp"

namespace wherry::fabric::ofi {

class Link;

/// What the service does something for. Its calls come from the service, with Service::mutex held.
class Served {
 public:
  Served() = default;
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  virtual ~Served() = default;

  /// `descriptor` is readable, or was. Returns true if there is more to do, which no descriptor may tell.
  virtual bool serve(int descriptor) = 0;
  /// About once a second, and as soon as something else has happened.
  virtual bool look() { return false; }
};

/// Locks: the service's mutex before a link's.
class Service {
 public:
  /// This process's; a forked child has one of its own. Never destroyed. Throws what Domain and epoll_create throw.
  static Service& instance();

  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Held while anything is served. What holds it keeps all connections of this process waiting.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  /// Makes it look at all that it serves. Without the mutex.
  void nudge() const noexcept { nudge_.notify(); }

  // All with the mutex held.
  [[nodiscard]] Domain& domain() { return domain_; }
  /// `served` stays until `unwatch`. Throws Error(ENOSPC, ENOMEM).
  void watch(int descriptor, std::shared_ptr<Served> served);
  void unwatch(int descriptor) noexcept;
  /// The link that a knocking endpoint with that token belongs to.
  void expect(const Token& token, std::shared_ptr<Link> link) { expected_.emplace(token, std::move(link)); }
  void expect_no_longer(const Token& token) noexcept { expected_.erase(token); }
  /// Where endpoints' news go: by the context that they were made with.
  void add(void* context, std::shared_ptr<Link> link) { links_.emplace(context, std::move(link)); }
  void remove(void* context) noexcept { links_.erase(context); }

 private:
  struct Maker;

  Service();
  ~Service() = default;

  static Maker& maker();

  [[noreturn]] void run();
  bool serve_news();
  void dispatch(Domain::News news);
  void add_to_epoll(int descriptor, std::uint32_t events);
  bool serve(int descriptor);
  bool look_at_all();

  std::mutex mutex_;
  Domain domain_;
  UniqueFd epoll_;
  EventBell nudge_;
  std::map<int, std::shared_ptr<Served>> watched_;  // by descriptor
  std::map<Token, std::shared_ptr<Link>> expected_;
  std::map<void*, std::shared_ptr<Link>> links_;
};

}  // namespace wherry::fabric::ofi
