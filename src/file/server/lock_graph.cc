// SPDX-License-Identifier: Apache-2.0
#include "file/server/lock_graph.hpp"

#include <algorithm>
#include <utility>

namespace wherry::file {
namespace {

bool is_same(const layout::FileLock& one, const layout::FileLock& other) {
  return one.offset == other.offset && one.length == other.length && one.type == other.type;
}

/// Limit of one process and file, so that a bad client does not use up the memory.
constexpr std::size_t kMostWaits = 1024;

}  // namespace

LockGraph::Member::Member(LockGraph& graph, const Process& process, const layout::FileIdentity& file,
                          std::shared_ptr<const HeldLocks> held)
    : graph_(graph), process_(process), file_(file), held_(std::move(held)) {
  const std::lock_guard lock(graph_.mutex_);
  graph_.members_.insert(this);
}

LockGraph::Member::~Member() {
  const std::lock_guard lock(graph_.mutex_);
  graph_.members_.erase(this);
}

bool LockGraph::Member::wait(const layout::FileLock& lock) {
  const std::lock_guard guard(graph_.mutex_);
  if (graph_.closes_cycle(*this, lock)) return false;
  const bool is_known = std::ranges::any_of(waits_, [&](const auto& one) { return is_same(one, lock); });
  if (!is_known && waits_.size() < kMostWaits) waits_.push_back(lock);
  return true;
}

void LockGraph::Member::end_wait(const layout::FileLock& lock) {
  const std::lock_guard guard(graph_.mutex_);
  std::erase_if(waits_, [&](const auto& one) { return is_same(one, lock); });
}

/// Requires the lock.
bool LockGraph::closes_cycle(const Member& member, const layout::FileLock& lock) const {
  struct Wait {
    const Member* member;
    layout::FileLock lock;
  };
  std::set<Process> seen;
  std::vector<Wait> next{{&member, lock}};
  while (!next.empty()) {
    const Wait one = next.back();
    next.pop_back();
    for (const Member* const holder : members_) {
      const bool is_in_the_way = holder->file_ == one.member->file_ && holder->process_ != one.member->process_ &&
                                 holder->held_->conflicts_with(one.lock);
      if (!is_in_the_way) continue;
      if (holder->process_ == member.process_) return true;
      if (!seen.insert(holder->process_).second) continue;
      for (const Member* const other : members_) {
        if (other->process_ != holder->process_) continue;
        for (const auto& wait : other->waits_) next.push_back({other, wait});
      }
    }
  }
  return false;
}

}  // namespace wherry::file
