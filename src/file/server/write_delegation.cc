// SPDX-License-Identifier: Apache-2.0
#include "file/server/write_delegation.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "file/server/lease.hpp"

namespace wherry::file {
namespace {

/// Whether the kernel keeps a lease for longer than `all`. 0: forever.
bool outlasts(WriteDelegation::Clock::duration all) {
  long seconds = -1;
  std::ifstream("/proc/sys/fs/lease-break-time") >> seconds;
  return seconds == 0 || std::chrono::seconds(seconds) > all;
}

}  // namespace

std::shared_ptr<WriteDelegation> WriteDelegation::take(int descriptor, std::uint64_t client, Clock::duration timeout,
                                                       pid_t notified) {
  struct stat found{};
  if (!outlasts((kTimeouts + 1) * timeout) || ::fstat(descriptor, &found) != 0) return nullptr;
  // A duplicate of the same description, which stays open until the lease is given up.
  UniqueFd lease(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!lease.valid() || !take_lease(lease.get(), F_WRLCK, notified)) return nullptr;
  const Identity file{.device = found.st_dev, .inode = found.st_ino};
  return std::shared_ptr<WriteDelegation>(new WriteDelegation(std::move(lease), file, client, timeout));
}

void WriteDelegation::end() {
  const std::lock_guard lock(mutex_);
  if (!lease_.valid()) return;
  recalled_ = recalled_ || ::fcntl(lease_.get(), F_GETLEASE) != F_WRLCK;
  give_up();
}

void WriteDelegation::give_up() {
  ::fcntl(lease_.get(), F_SETLEASE, F_UNLCK);
  lease_.reset();
}

WriteDelegation::State WriteDelegation::look(Clock::time_point now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return State::changing;
  advance(now);
  return !lease_.valid() ? State::over : recalled_ ? State::recalled : State::held;
}

bool WriteDelegation::was_recalled() const {
  const std::lock_guard lock(mutex_);
  return recalled_;
}

bool WriteDelegation::was_cut_off() const {
  const std::lock_guard lock(mutex_);
  return cut_off_;
}

/// A server that was stopped may find a lease that broke long ago. Time counts from when the lease was last seen whole.
void WriteDelegation::advance(Clock::time_point now) {
  if (!lease_.valid()) return;
  if (!recalled_ && ::fcntl(lease_.get(), F_GETLEASE) == F_WRLCK) {
    last_unbroken_ = now;
    return;
  }
  if (!recalled_) timeout_start_ = now;
  recalled_ = true;
  if (now < timeout_start_ + timeout_ && now < last_unbroken_ + kTimeouts * timeout_) return;
  cut_off_ = true;
  give_up();
}

WriteDelegation::Change::Change(WriteDelegation* delegation) : delegation_(delegation) {
  if (delegation_ == nullptr) return;
  lock_ = std::unique_lock(delegation_->mutex_);
  delegation_->advance(Clock::now());
}

WriteDelegation::Change::~Change() {
  if (delegation_ != nullptr) delegation_->timeout_start_ = Clock::now();
}

}  // namespace wherry::file
