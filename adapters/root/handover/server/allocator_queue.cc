// SPDX-License-Identifier: Apache-2.0
// BufferAllocator: its queue of requests for memory.
#include <algorithm>
#include <limits>

#include <wherry/error.hpp>

#include "buffer_allocator.hpp"

namespace wherry::root {

/// Whether the session may get the memory it waits for without exceeding its number of leases. A growing file needs no
/// further lease.
bool BufferAllocator::may_hold_more(const Session& session) const {
  return session.lease != nullptr || session.leases < options_.leases_per_worker;
}

/// Grants memory to waiting sessions. FIFO, so that a large file is not starved. Two kinds of request may be overtaken:
/// (a) a request for another lease by a worker that already has one, (b) a request for a large lease that is_crowded()
/// defers.
void BufferAllocator::serve() {
  put_off_ = false;
  if (queue_.empty()) return;
  const auto now = Clock::now();
  std::size_t too_much =
      std::numeric_limits<std::size_t>::max();  // the smallest Within::spare request that failed in this call, in bytes
  for (auto at = queue_.begin(); at != queue_.end();) {
    Session& session = **at;
    const bool grows = session.lease != nullptr;
    const bool next = !grows && session.leases != 0;
    if (!grows && (session.large || !pool_.is_small(session.wanted)) && is_crowded(now)) {
      put_off_ = true;
      ++at;
      continue;
    }
    const Within within = grows && session.lease->over_budget ? Within::over_budget
                          : next                              ? Within::spare
                                                              : Within::budget;
    if (may_hold_more(session) && !(next && session.wanted >= too_much)) {
      if (try_grant(session, within)) {
        at = queue_.erase(at);
        continue;
      }
      if (next) too_much = session.wanted;
    }
    if (!next) {
      for (const auto& [number, other] : sessions_) recall(*other);
      return;
    }
    ++at;
  }
}

/// Whether to defer another large lease. It would only cost cache space or new pages, while another is about to come
/// free.
bool BufferAllocator::is_crowded(Clock::time_point now) const {
  return pool_.large_held() >= options_.leases_at_once && now - freed_ < options_.soon;
}

/// Asks a worker to leave its lease. A worker of small files keeps it between files until others wait for memory.
void BufferAllocator::recall(Session& session) {
  if (session.state != Session::State::filling || session.lease->recalled) return;
  session.lease->recalled = session.send(record_of(RootKind::recall));
}

/// Grants the memory that the session waits for. False if there is not enough memory. After a system error the session
/// is marked for removal, and true is returned.
bool BufferAllocator::try_grant(Session& session, Within within) {
  try {
    if (session.lease != nullptr) {
      if (!pool_.grow(*session.lease->range, session.wanted, within)) return false;
    } else {
      const std::size_t liked = session.large ? options_.unit : 0;
      auto lease = pool_.take(session.wanted, liked, session.shown.numbers(), within);
      if (lease == nullptr) return false;
      session.lease = std::make_shared<GrantedLease>();
      session.lease->range = std::move(lease);
      ++session.leases;
    }
    Lease& lease = *session.lease->range;
    const std::uint64_t offset = session.shown.show(session.frames.stream().windows(), lease);
    session.lease->over_budget = session.lease->over_budget || within == Within::over_budget;
    if (!session.is_closing()) session.state = Session::State::filling;
    RootRecord grant = record_of(RootKind::grant, offset, lease.backed());
    if (!pool_.may_grow(lease) && pool_.held() <= options_.budget / kKept) grant.flags = layout::kRootKeeps;
    session.send(grant);
  } catch (const Error& error) {
    session.close(error.what());
    if (wake_) wake_();
  }
  moved_ = Clock::now();
  return true;
}

Timeout BufferAllocator::grant_over_budget() {
  const std::lock_guard lock(mutex_);
  if (put_off_) {
    const auto since = Clock::now() - freed_;
    if (since < options_.soon) return options_.soon - since;
    serve();
  }
  while (!queue_.empty() && leaving_ == 0) {
    const auto waited = Clock::now() - moved_;
    if (may_free_something() && waited < options_.longest_stall) return options_.longest_stall - waited;
    Session* const session = first_for_over_budget();
    if (session == nullptr) break;
    ++over_budget_grants_;
    std::erase(queue_, session);
    try_grant(*session, Within::over_budget);
  }
  return {};
}

/// Whether some worker may free memory soon: it fills a lease and does not wait for memory.
bool BufferAllocator::may_free_something() const {
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    const Session& session = *entry.second;
    return session.state == Session::State::filling;
  });
}

/// Returns the session to grant memory over the budget: the first in the queue that holds part of a file, because it
/// frees the most memory soonest; else the first in the queue.
Session* BufferAllocator::first_for_over_budget() {
  Session* first = nullptr;
  for (Session* const session : queue_) {
    if (!may_hold_more(*session)) continue;
    if (session->lease != nullptr) return session;
    if (first == nullptr) first = session;
  }
  return first;
}

}  // namespace wherry::root
