// SPDX-License-Identifier: Apache-2.0
#include "file/server/server_worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace wherry::file {
namespace {

constexpr std::size_t kReports = 64;

/// Pause between two attempts of connections for which no descriptor reports progress.
constexpr std::chrono::milliseconds kRetry{1};

/// Each connection has three poller tokens: for its stream, its send descriptor, and its recalls.
constexpr Poller::Token kTokens = 3;
constexpr Poller::Token stream_of(Poller::Token token) { return kTokens * token; }
constexpr Poller::Token descriptor_of(Poller::Token token) { return kTokens * token + 1; }
constexpr Poller::Token recalls_of(Poller::Token token) { return kTokens * token + 2; }

}  // namespace

Server::Worker::Worker(Service& service, int left) : service_(service), left_(left), thread_([this] { run(); }) {}

Server::Worker::~Worker() {
  stopping_.store(true, std::memory_order_relaxed);
  poller_.interrupt();
  thread_.join();
}

void Server::Worker::add(Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    new_.push_back(std::move(stream));
  }
  some_new_ = true;
  connections_.fetch_add(1, std::memory_order_relaxed);
  poller_.interrupt();
}

void Server::Worker::run() {
  std::array<Token, kReports> ready;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::size_t count = poller_.wait(ready, timeout());
    if (some_new_.exchange(false)) take_new();
    crowded_ = count + again_.size() > 1;
    advance_all(again_);
    if (!later_.empty() && Clock::now() >= retry_) advance_all(later_);
    for (std::size_t i = 0; i < count; ++i) {
      const auto found = sessions_.find(ready[i] / kTokens);
      if (found != sessions_.end() && !found->second.again) advance(found->first);
    }
  }
  sessions_.clear();
}

Timeout Server::Worker::timeout() const {
  if (!again_.empty()) return std::chrono::nanoseconds(0);
  if (later_.empty()) return {};
  return std::max<std::chrono::nanoseconds>(retry_ - Clock::now(), std::chrono::nanoseconds(0));
}

/// Advances the connections of a list, to which they may be added again.
void Server::Worker::advance_all(std::vector<Token>& list) {
  for (const Token token : std::exchange(list, {})) {
    const auto found = sessions_.find(token);
    if (found != sessions_.end() && std::exchange(found->second.again, false)) advance(token);
  }
}

void Server::Worker::take_new() {
  std::vector<Stream> streams;
  {
    const std::lock_guard lock(mutex_);
    streams.swap(new_);
  }
  for (Stream& stream : streams) {
    const Token token = next_++;
    Connection& connection = sessions_.try_emplace(token, std::move(stream), service_).first->second;
    wait_for(connection, token, ServerSession::Next::when_readable);
  }
}

void Server::Worker::advance(Token token) {
  const auto found = sessions_.find(token);
  if (found == sessions_.end()) return;
  const ServerSession::Next next = found->second.session.advance(crowded_);
  wait_for(found->second, token, next);
}

/// While the client's ring is full, only its send descriptor must wake this thread. So the stream, which may have the
/// next request ready all the time, leaves the poller. It also leaves it if no descriptor reports progress.
void Server::Worker::wait_for(Connection& connection, Token token, ServerSession::Next next) {
  using Next = ServerSession::Next;
  Stream& stream = connection.session.stream();
  try {
    if (next == Next::over) return end(token);
    if (next == Next::when_writable && connection.send_descriptor < 0) {
      connection.send_descriptor = stream.send_descriptor();
      poller_.add(connection.send_descriptor, descriptor_of(token));
    }
    if (next == Next::at_once && !std::exchange(connection.again, true)) again_.push_back(token);
    if (next == Next::later && !std::exchange(connection.again, true)) {
      if (later_.empty()) retry_ = Clock::now() + kRetry;
      later_.push_back(token);
    }
    if (connection.recall_descriptor < 0 && connection.session.recall_descriptor() >= 0) {
      connection.recall_descriptor = connection.session.recall_descriptor();
      poller_.add(connection.recall_descriptor, recalls_of(token));
    }
    const bool receives = next != Next::when_writable && next != Next::later;
    if (receives == connection.receiving) return;
    if (receives) {
      poller_.add(stream, stream_of(token));
    } else {
      poller_.remove(stream);
    }
    connection.receiving = receives;
  } catch (const Error& error) {
    service_.warnings.write(log::Level::warning, std::string("wherry serve: closes a connection: ") + error.what());
    end(token);
  }
}

void Server::Worker::end(Token token) {
  const auto found = sessions_.find(token);
  if (found->second.send_descriptor >= 0) poller_.remove(found->second.send_descriptor);
  if (found->second.recall_descriptor >= 0) poller_.remove(found->second.recall_descriptor);
  sessions_.erase(found);
  connections_.fetch_sub(1, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  // The counter is full, so the event is readable already.
  if (::write(left_, &one, sizeof one) < 0) return;
}

}  // namespace wherry::file
