// SPDX-License-Identifier: Apache-2.0
#include "file/mount/lock_waits.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLockPause = 1ms;
constexpr auto kLongestLockPause = 50ms;
/// With many waits the longest pause grows by this for each: together they send at most 1000 requests per second.
constexpr auto kLockPauseOfEach = 1ms;

}  // namespace

/// False: it is answered already. True, and `tried`: `adding_` includes it.
bool LockWaits::enter(Entries& made) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    answer(std::move(made), EIO);
    return false;
  }
  if (made.front().tried) ++adding_;
  entries_.splice(entries_.end(), made);
  changed_.notify_all();
  return true;
}

void LockWaits::start(std::function<void()> begin) {
  thread_ = std::thread([this, first = std::move(begin)] {
    first();
    run();
  });
}

void LockWaits::add(Wait wait, const std::function<void()>& announce) {
  Entries made(1);
  const auto entry = made.begin();
  entry->wait = std::move(wait);
  entry->pause = kFirstLockPause;
  if (!enter(made)) return;
  announce();
  finish(entry, EAGAIN);
  const std::lock_guard lock(mutex_);
  --adding_;
  changed_.notify_all();
}

LockWaits::Prepared LockWaits::prepare(Wait wait) {
  Prepared made;
  Entry& entry = made.entry_.emplace_back();
  entry.wait = std::move(wait);
  entry.pause = kFirstLockPause;
  entry.tried = false;
  return made;
}

void LockWaits::hand_over(Prepared wait) noexcept { enter(wait.entry_); }

/// Call after each attempt.
void LockWaits::finish(Entries::iterator entry, int error) {
  std::unique_lock lock(mutex_);
  entry->tried = false;
  const int most = entry->wait.most_attempts;
  const bool again = !entry->interrupted && !stopping_ && (most == 0 || entry->attempts < most);
  if (error == EAGAIN && again) {
    entry->due = Clock::now();
    if (!std::exchange(entry->must_retry, false)) entry->due += entry->pause;
    const Clock::duration longest = std::max<Clock::duration>(kLongestLockPause, kLockPauseOfEach * entries_.size());
    entry->pause = std::min(2 * entry->pause, longest);
    changed_.notify_all();
    return;
  }
  if (error == EAGAIN && entry->interrupted) error = interrupt_error_of(*entry);
  if (error == EAGAIN && stopping_) error = EIO;
  Entries done;
  done.splice(done.end(), entries_, entry);
  lock.unlock();
  answer(std::move(done), error);
}

/// A call that does not wait must not return EINTR.
int LockWaits::interrupt_error_of(const Entry& entry) { return entry.wait.most_attempts == 0 ? EINTR : EAGAIN; }

void LockWaits::answer(Entries entries, int error) {
  for (Entry& entry : entries) entry.wait.answer(error);
}

/// The wait that is due first, so that a file whose waits are always due delays no other. Of equal ones, the longest
/// waiting.
LockWaits::Entries::iterator LockWaits::next() {
  auto best = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->tried) continue;
    if (best == entries_.end() || entry->due < best->due) best = entry;
  }
  return best;
}

void LockWaits::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto entry = next();
    if (entry == entries_.end()) {
      changed_.wait(lock);
      continue;
    }
    if (entry->due > Clock::now()) {
      changed_.wait_until(lock, entry->due);
      continue;
    }
    entry->tried = true;
    ++entry->attempts;
    lock.unlock();
    int error = EIO;
    try {
      error = entry->wait.attempt();
    } catch (const std::exception& unexpected) {
      log::write(log::Level::error, unexpected.what());
    }
    finish(entry, error);
    lock.lock();
  }
}

void LockWaits::interrupt(const void* id) {
  std::unique_lock lock(mutex_);
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& one) { return one.wait.id == id; });
  if (entry == entries_.end()) return;
  if (entry->tried) {
    entry->interrupted = true;
    return;
  }
  const int error = interrupt_error_of(*entry);
  Entries done;
  done.splice(done.end(), entries_, entry);
  lock.unlock();
  answer(std::move(done), error);
}

void LockWaits::retry_now(NodeId node) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  for (Entry& entry : entries_) {
    if (entry.wait.node != node || entry.wait.most_attempts != 0) continue;
    entry.due = std::min(entry.due, now);
    entry.must_retry = entry.tried;
  }
  if (!entries_.empty()) changed_.notify_all();
}

/// Entries that `add` still uses are answered by `add`. It does not block, so this waits only briefly for it.
void LockWaits::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  Entries left;
  lock.lock();
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto entry = next++;
    if (!entry->tried) left.splice(left.end(), entries_, entry);
  }
  lock.unlock();
  answer(std::move(left), EIO);
  lock.lock();
  changed_.wait(lock, [this] { return adding_ == 0; });
}

}  // namespace wherry::file::mount
