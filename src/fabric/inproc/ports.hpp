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

/// One connection attempt: shared by the connector and, while it waits in the queue, the listener.
struct Attempt {
  enum class State : std::uint8_t { waiting, accepted, refused, given_up };

  Address target;
  EventBell news;
  std::mutex mutex;
  State state = State::waiting;
  std::unique_ptr<Side> side;              // the connector's, until it is accepted
  std::unique_ptr<Connection> connection;  // the connector's, once it is accepted
};

/// The connectors that wait at one port.
class Queue {
 public:
  /// False: the port is closed.
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

  /// Binds `address` ('*' as port: a free one) to a new queue. Throws Error(EADDRINUSE).
  std::pair<Key, std::shared_ptr<Queue>> bind(std::uint16_t node, const Address& address);
  void release(const Key& key);
  /// Null: there is no listener.
  std::shared_ptr<Queue> find(const Key& key);

 private:
  [[nodiscard]] std::uint16_t free_port(std::uint16_t node, const Address& address) const;

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Queue>> queues_;
};

}  // namespace wherry::fabric::inproc
