// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <wherry/poller.hpp>

#include "file/server/server.hpp"

namespace wherry::file {

/// A thread that serves connections.
class Server::Worker {
 public:
  /// @param left  an eventfd, made readable when a connection ends
  Worker(Service& service, int left);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Ends all connections.
  ~Worker();

  /// For the accepting thread.
  void add(Stream stream);
  [[nodiscard]] std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }

 private:
  using Token = Poller::Token;
  using Clock = std::chrono::steady_clock;
  struct Connection {
    Connection(Stream stream, Service& service) : session(std::move(stream), service) {}
    ServerSession session;
    int send_descriptor = -1;    ///< in the poller since the client's ring was first full
    int recall_descriptor = -1;  ///< in the poller since it exists
    bool receiving = false;      ///< whether its stream is in the poller
    bool again = false;          ///< in `again_` or `later_`
  };

  void run();
  [[nodiscard]] Timeout timeout() const;
  void advance_all(std::vector<Token>& list);
  void take_new();
  void advance(Token token);
  void wait_for(Connection& connection, Token token, ServerSession::Next next);
  void end(Token token);

  Service& service_;
  int left_;
  Poller poller_;
  std::map<Token, Connection> sessions_;
  std::vector<Token> again_;  ///< ready connections whose turn has ended
  std::vector<Token> later_;  ///< no descriptor reports their progress: retried together
  Clock::time_point retry_{};
  bool crowded_ = false;  ///< more than one connection was ready
  Token next_ = 0;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> some_new_{false};
  std::mutex mutex_;
  std::vector<Stream> new_;
  std::thread thread_;
};

}  // namespace wherry::file
