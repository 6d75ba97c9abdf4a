// SPDX-License-Identifier: Apache-2.0
// Grants the pool's memory to workers and tracks their files: all of the server except waiting for descriptors.
//
// One lock guards it. The server's thread delivers the messages of workers. The program's threads call `done` and
// `refuse`, which answer the worker at once and grant the freed memory to the next in the queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/fork_generation.hpp"
#include "events.hpp"
#include "pool.hpp"
#include "server.hpp"
#include "session.hpp"

namespace wherry::root {

/// A file that a worker posted.
class PostedFile::Impl {
 public:
  std::shared_ptr<class BufferAllocator> allocator;
  std::shared_ptr<const Worker> worker;
  std::shared_ptr<GrantedLease> lease;
  std::string name;
  std::size_t place = 0;
  std::size_t bytes = 0;
  std::uint64_t sequence = 0;
  Origin origin{};
};

class BufferAllocator : public std::enable_shared_from_this<BufferAllocator> {
 public:
  using Clock = std::chrono::steady_clock;

  BufferAllocator(ServerOptions options, Events& events)
      : options_(std::move(options)), events_(&events), pool_(limits_of(options_)) {}

  // The server's thread ---------------------------------------------------------------------------------------------

  void join(std::uint64_t number, const std::shared_ptr<Session>& session);
  /// Handles a message of a worker. Closes the session if the message violates the protocol.
  void on_message(Session& session, const ControlMessage& message);
  /// Removes a session. Its unfinished file is lost. The caller closes the stream.
  void leave(Session& session, const std::string& reason);
  /// Grants memory over the budget to the first in the queue while no worker can make progress. Returns when to call
  /// again; empty: no timer needed.
  Timeout grant_over_budget();
  /// Returns a session that is to be removed, or null.
  std::shared_ptr<Session> closing();
  /// Forgets all sessions: from now on nothing is sent to workers, and no event is pushed.
  void close();
  /// Sets the function that wakes the server's thread. It is called with the lock held.
  void on_news(std::function<void()> wake);

  // Any thread --------------------------------------------------------------------------------------------------------

  void done(PostedFile::Impl& file);
  void refuse(PostedFile::Impl& file, std::string_view reason);
  void drop(std::uint64_t number, std::string_view reason);
  ServerStatistics statistics();

 private:
  static PoolLimits limits_of(const ServerOptions& options);

  void greet(Session& session, const RootRecord& hello);
  void need(Session& session, std::uint64_t bytes);
  void post(Session& session, const ControlMessage& message, bool already);
  [[nodiscard]] const char* fault_in(const Session& session, const ControlMessage& post) const;
  void leave_lease(Session& session);
  void finish(Session& session);
  Session* free(PostedFile::Impl& file);
  void release(GrantedLease& granted, Session* session);
  static void report_done(Session& session, std::uint64_t sequence);
  static void report_all_done(Session& session);
  Session* find(std::uint64_t number);

  void serve();
  bool try_grant(Session& session, Within within);
  [[nodiscard]] Session* first_for_over_budget();
  [[nodiscard]] bool may_free_something() const;
  [[nodiscard]] bool may_hold_more(const Session& session) const;
  [[nodiscard]] bool is_crowded(Clock::time_point now) const;
  static void recall(Session& session);

  /// While requests are deferred, a worker is asked to leave its lease after it has posted this many files from it.
  static constexpr std::size_t kTurn = 16;
  /// Idle workers keep small leases while at most 1/kKept of the budget is granted.
  static constexpr std::size_t kKept = 4;

  const ServerOptions options_;
  std::mutex mutex_;
  Events* events_;
  Pool pool_;
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions_;
  std::deque<Session*> queue_;  ///< sessions that wait for memory, FIFO
  bool put_off_ = false;        ///< is_crowded() deferred a request
  std::size_t leaving_ = 0;     ///< leases that their workers have left and that become free when their files are done
  std::uint64_t over_budget_grants_ = 0;
  Clock::time_point moved_ = Clock::now();  ///< when memory was last granted or freed
  Clock::time_point freed_;                 ///< when a lease last became free
  std::function<void()> wake_;
};

}  // namespace wherry::root
