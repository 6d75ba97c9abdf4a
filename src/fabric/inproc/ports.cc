// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/ports.hpp"

#include <cerrno>
#include <limits>

namespace wherry::fabric::inproc {

namespace {

constexpr std::uint16_t kFirstFreePort = 1089;  // SCIF reserves the ports below for the administrator

void refuse(Attempt& attempt) {
  {
    const std::lock_guard lock(attempt.mutex);
    if (attempt.state == Attempt::State::waiting) attempt.state = Attempt::State::refused;
  }
  attempt.news.notify();
}

}  // namespace

bool Queue::push(const std::shared_ptr<Attempt>& attempt) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  waiting_.push_back(attempt);
  bell_.notify();
  return true;
}

void Queue::push_front(const std::shared_ptr<Attempt>& attempt) {
  const std::lock_guard lock(mutex_);
  if (closed_) return refuse(*attempt);
  waiting_.push_front(attempt);
  bell_.notify();
}

std::shared_ptr<Attempt> Queue::pop() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return nullptr;
  auto attempt = std::move(waiting_.front());
  waiting_.pop_front();
  if (waiting_.empty()) bell_.silence();
  return attempt;
}

void Queue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& attempt : waiting_) refuse(*attempt);
  waiting_.clear();
}

std::pair<Ports::Key, std::shared_ptr<Queue>> Ports::bind(std::uint16_t node, const Address& address) {
  const std::lock_guard lock(mutex_);
  const Key key{node, address.port ? *address.port : free_port(node, address)};
  auto queue = std::make_shared<Queue>();
  if (!queues_.emplace(key, queue).second) {
    throw Error(EADDRINUSE, "listen", address.to_string(),
                "this process listens there already; close that listener, or bind * for a free port");
  }
  return {key, std::move(queue)};
}

std::uint16_t Ports::free_port(std::uint16_t node, const Address& address) const {
  for (unsigned port = kFirstFreePort; port <= std::numeric_limits<std::uint16_t>::max(); ++port) {
    if (!queues_.contains({node, static_cast<std::uint16_t>(port)})) return static_cast<std::uint16_t>(port);
  }
  throw Error(EADDRINUSE, "listen", address.to_string(), "every port of this node is taken; close some listeners");
}

void Ports::release(const Key& key) {
  const std::lock_guard lock(mutex_);
  queues_.erase(key);
}

std::shared_ptr<Queue> Ports::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(key);
  return found == queues_.end() ? nullptr : found->second;
}

}  // namespace wherry::fabric::inproc
