// SPDX-License-Identifier: Apache-2.0
// Where the listeners and connectors of one process meet. May include: base.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "fabric/inproc/pair.hpp"
#include "fabric/rendezvous.hpp"

namespace wherry::fabric::inproc {

/// One attempt to connect. The connector and, while it is queued, the listener share it.
struct Attempt {
  enum class State : std::uint8_t { waiting, accepted, refused, given_up };

  Address target;
  EventBell news;
  std::mutex mutex;
  State state = State::waiting;
  std::unique_ptr<Side> side;              // the connector's side, until the attempt is accepted
  std::unique_ptr<Connection> connection;  // the connector's end, once the attempt is accepted
};

/// The connectors that wait at one port.
class Queue {
 public:
  /// Appends an attempt. False if the port is closed.
  bool push(const std::shared_ptr<Attempt>& attempt);
  void push_front(const std::shared_ptr<Attempt>& attempt);
  std::shared_ptr<Attempt> pop();
  void close();
  [[nodiscard]] int descriptor() const { return bell_.descriptor(); }

 private:
  std::mutex mutex_;
  std::deque<std::shared_ptr<Attempt>> waiting_;
  EventBell bell_;  // rung while an attempt waits
  bool closed_ = false;
};

class Ports {
 public:
  using Key = std::pair<std::uint16_t, std::uint16_t>;  // node, port

  /// Binds `address` to a new queue; without a port, chooses a free one. Throws Error(EADDRINUSE).
  std::pair<Key, std::shared_ptr<Queue>> bind(std::uint16_t node, const Address& address);
  void release(const Key& key);
  /// Returns the queue of a port; null if there is no listener.
  std::shared_ptr<Queue> find(const Key& key);

 private:
  [[nodiscard]] std::uint16_t free_port(std::uint16_t node, const Address& address) const;

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Queue>> queues_;
};

}  // namespace wherry::fabric::inproc
