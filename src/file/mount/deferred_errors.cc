// SPDX-License-Identifier: Apache-2.0
#include "file/mount/deferred_errors.hpp"

#include <utility>

#include "file/mount/attempts.hpp"

namespace wherry::file::mount {
namespace {

constexpr unsigned kShift = 16;
constexpr std::uint32_t kMask = (std::uint32_t{1} << kShift) - 1;

}  // namespace

void DeferredErrors::keep_in(KeptState* state, std::uint64_t number, std::uint32_t left) {
  shared_->state = state;
  shared_->number = number;
  shared_->now = {.own = static_cast<int>(left & kMask), .other = static_cast<int>(left >> kShift)};
  shared_->kept = shared_->now;
  shared_->any.store(left != 0, std::memory_order_relaxed);
}

void DeferredErrors::note(int error) { note(&Errors::own, error); }

void DeferredErrors::note_other(int error) { note(&Errors::other, error); }

void DeferredErrors::note(int Errors::* which, int error) {
  if (error == 0) return;
  const std::lock_guard lock(shared_->mutex);
  for (Errors* const errors : {&shared_->now, &shared_->kept}) {
    if (errors->*which == 0) errors->*which = error;
  }
  shared_->any.store(true, std::memory_order_relaxed);
  shared_->keep();
}

int DeferredErrors::take() { return take(false); }

int DeferredErrors::take_for_sync() { return take(true); }

int DeferredErrors::take(bool others) {
  if (!shared_->any.load(std::memory_order_relaxed)) return 0;
  int error = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    Errors& now = shared_->now;
    const int other = others ? std::exchange(now.other, 0) : 0;
    const int own = std::exchange(now.own, 0);
    error = own != 0 ? own : other;
    if (error == 0) return 0;
    shared_->any.store(now.other != 0, std::memory_order_relaxed);
    ++shared_->telling;
  }
  when_answered([shared = shared_] { shared->finish(); });
  return error;
}

int DeferredErrors::pending() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->now.own;
}

std::uint32_t DeferredErrors::untold() const {
  const std::lock_guard lock(shared_->mutex);
  return static_cast<std::uint32_t>(shared_->kept.own) | static_cast<std::uint32_t>(shared_->kept.other) << kShift;
}

/// With the lock.
void DeferredErrors::Shared::keep() const {
  KeptState::Batch batch(state);
  if (state == nullptr) return;
  batch.add(layout::KeptWord::failed, number,
            static_cast<std::uint32_t>(kept.own) | static_cast<std::uint32_t>(kept.other) << kShift);
}

/// While another call is not answered its error stays, too.
void DeferredErrors::Shared::finish() {
  const std::lock_guard lock(mutex);
  if (--telling != 0) return;
  kept = now;
  keep();
}

}  // namespace wherry::file::mount
