// SPDX-License-Identifier: Apache-2.0
// Closing pairs in order.
#include <cerrno>
#include <chrono>

#include "base/log.hpp"
#include "mailbox/connector.hpp"

namespace wherry::mailbox {

Connector::~Connector() {
  if (origin_.inherited()) return;
  const auto deadline = std::chrono::steady_clock::now() + fabric::kCloseTimeout;  // for all pairs together
  for (const auto& pair : pairs_) {
    if (pair != nullptr) finish(*pair);
  }
  for (const auto& pair : pairs_) {
    if (pair != nullptr && pair->is_open()) flush(*pair, deadline);
  }
}

/// Tells the peer that nothing follows.
void Connector::finish(Pair& pair) noexcept {
  if (!pair.is_open()) return pair.early.end();
  pair.out->finish();
}

/// Waits until the peer's side has acknowledged everything sent. Logs a warning at the deadline.
void Connector::flush(Pair& pair, fabric::Deadline deadline) noexcept {
  if (pair.connection->flush(deadline).error != ETIMEDOUT) return;
  log::write(log::Level::warning,
             "close mailbox: a peer has not acknowledged all messages within 10 s and may lose some; check whether its "
             "process is stopped");
}

void Connector::forget(Mailbox::Peer peer) noexcept {
  Pair* pair = pairs_.find(peer);
  if (pair == nullptr) return;
  if (!origin_.inherited()) {
    finish(*pair);
    if (pair->is_open()) flush(*pair, std::chrono::steady_clock::now() + fabric::kCloseTimeout);
  }
  (void)lose(*pair, 0);
  early_.forget(*pair);
  write_interest_.forget(peer);
  pairs_.remove(peer);
}

}  // namespace wherry::mailbox
