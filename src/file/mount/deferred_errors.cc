// SPDX-License-Identifier: Apache-2.0
#include "file/mount/deferred_errors.hpp"

#include <utility>

#include "file/mount/attempts.hpp"

namespace wherry::file::mount {
namespace {

constexpr unsigned kShift = 16;
constexpr std::uint32_t kReported = layout::kKeptErrorReported;
constexpr std::uint32_t kMask = kReported - 1;
static_assert(kReported == std::uint32_t{1} << (kShift - 1));

}  // namespace

std::uint32_t DeferredErrors::Errors::word() const {
  return static_cast<std::uint32_t>(own) | (is_reported ? kReported : 0) | static_cast<std::uint32_t>(other) << kShift;
}

void DeferredErrors::keep_in(KeptState* state, std::uint64_t number, std::uint32_t left) {
  shared_->state = state;
  shared_->number = number;
  shared_->now = {.own = static_cast<int>(left & kMask),
                  .other = static_cast<int>(left >> kShift),
                  .is_reported = (left & kReported) != 0};
  shared_->kept = shared_->now;
  shared_->any.store(shared_->now.any(), std::memory_order_relaxed);
}

template <class Note>
void DeferredErrors::note(Note into) {
  const std::lock_guard lock(shared_->mutex);
  into(shared_->now);
  into(shared_->kept);
  shared_->any.store(shared_->now.any(), std::memory_order_relaxed);
  shared_->keep();
}

void DeferredErrors::note(int error) {
  if (error == 0) return;
  note([error](Errors& errors) {
    if (errors.own != 0 && !errors.is_reported) return;
    errors.own = error;
    errors.is_reported = false;
  });
}

void DeferredErrors::note_other(int error) {
  if (error == 0) return;
  note([error](Errors& errors) {
    if (errors.other == 0) errors.other = error;
  });
}

template <class Take>
int DeferredErrors::take(Take from) {
  if (!shared_->any.load(std::memory_order_relaxed)) return 0;
  int error = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    error = from(shared_->now);
    if (error == 0) return 0;
    shared_->any.store(shared_->now.any(), std::memory_order_relaxed);
    ++shared_->reporting;
  }
  when_answered([shared = shared_] { shared->finish(); });
  return error;
}

int DeferredErrors::take_for_write() {
  return take([](Errors& errors) {
    const bool is_new = errors.own != 0 && !errors.is_reported;
    errors.is_reported = errors.own != 0;
    return is_new ? errors.own : 0;
  });
}

int DeferredErrors::take_for_close() {
  return take([](Errors& errors) {
    errors.is_reported = errors.own != 0;
    return errors.own;
  });
}

int DeferredErrors::take_for_sync() {
  return take([](Errors& errors) {
    const Errors all = std::exchange(errors, {});
    return all.own != 0 ? all.own : all.other;
  });
}

int DeferredErrors::take_last() {
  return take([](Errors& errors) { return std::exchange(errors, {}).own; });
}

int DeferredErrors::pending() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->now.is_reported ? 0 : shared_->now.own;
}

std::uint32_t DeferredErrors::unreported() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->kept.word();
}

/// Requires the lock.
void DeferredErrors::Shared::keep() const {
  KeptState::Batch batch(state);
  if (state != nullptr) batch.add(layout::KeptWord::failed, number, kept.word());
}

/// While another call is unanswered, its error stays, too.
void DeferredErrors::Shared::finish() {
  const std::lock_guard lock(mutex);
  if (--reporting != 0) return;
  kept = now;
  keep();
}

}  // namespace wherry::file::mount
