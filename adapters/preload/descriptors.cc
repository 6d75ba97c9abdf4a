// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <sched.h>

#include <array>
#include <span>

#include "file/mapped/fault_signals.hpp"
#include "file/mapped/regions.hpp"

namespace wherry::preload {
namespace {

// Pages of zeros take no memory until they are written to.
constinit std::array<Entry, kDescriptors> entries{};
constinit std::atomic<int> highest{0};
constinit std::atomic<bool> setup_held{false};
constinit std::atomic<bool> stopped{false};

}  // namespace

Entry* entry_of(int fd) noexcept {
  if (static_cast<unsigned>(fd) >= entries.size() || stopped.load(std::memory_order_relaxed)) return nullptr;
  int seen = highest.load(std::memory_order_relaxed);
  // SHARE-ALL barrier: a fork looks as far as this, or is seen after the open
  while (seen <= fd && !highest.compare_exchange_weak(seen, fd + 1, std::memory_order_seq_cst)) {
  }
  return &entries[static_cast<unsigned>(fd)];
}

State settled(const Entry& entry) noexcept {
  State state = entry.load();
  while (state.mode() == Mode::moving) {
    sched_yield();
    state = entry.load();
  }
  return state;
}

void forget(int fd) noexcept { remember(fd, false); }

namespace {

/// Begins another generation of an entry. Before the mapping goes (rule 3).
template <typename Next>
void begin_generation(Entry& entry, Next next) {
  State before = entry.load();
  while (!entry.exchange(before, next(before))) {
  }
}

/// The same, where the mode and the number stay. A move of the offset just now must find its own generation.
void begin_same_generation(Entry& entry) {
  State before = settled(entry);
  while (!entry.exchange(before, State::of(before.generation() + 1, before.mode(), before.number()))) {
    before = settled(entry);
  }
}

void unmap_file(int fd, Entry& entry) {
  if (entry.file.is_mapped()) entry.file.drop(static_cast<std::uint32_t>(fd));
}

}  // namespace

void remember(int fd, bool alone) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  entry->progress.store(0, std::memory_order_relaxed);
  begin_generation(*entry, [alone](State before) {
    return State::of(before.generation() + 1, alone ? Mode::own : Mode::unknown, 0);
  });
  unmap_file(fd, *entry);
}

void never_track(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  begin_generation(*entry, [](State before) { return State::of(before.generation() + 1, Mode::never, 0); });
  unmap_file(fd, *entry);
}

void drop_mapping(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || !entry->file.is_mapped()) return;
  begin_same_generation(*entry);
  unmap_file(fd, *entry);
}

void revoke_mapping(std::uint32_t fd, std::uint32_t region) noexcept {
  Entry& entry = entries[fd];
  if (!entry.file.has_region(region)) return;
  begin_same_generation(entry);
  entry.file.forget();
}

void stop_tracking() noexcept { stopped.store(true, std::memory_order_relaxed); }

SetupLock::SetupLock() noexcept
    // SETUP acquire: fields that the last holder stored
    : held_(!setup_held.exchange(true, std::memory_order_acquire)) {}

SetupLock::~SetupLock() {
  // SETUP release: this holder's fields
  if (held_) setup_held.store(false, std::memory_order_release);
}

int highest_descriptor() noexcept {
  return highest.load(std::memory_order_seq_cst);  // SHARE-ALL barrier: what was opened before
}

void repair_descriptors_after_fork() noexcept {
  // A look first: stores would cost the child its own pages.
  if (setup_held.load(std::memory_order_relaxed)) setup_held.store(false, std::memory_order_relaxed);
  file::mapped::forget_regions_after_fork();
  file::mapped::repair_faults_after_fork();
  for (Entry& entry : std::span(entries).first(static_cast<std::size_t>(highest_descriptor()))) {
    State before = entry.load();
    // Another thread of the parent's opened it just before the fork: the parent gives it up as well (sharing.cc).
    if (before.mode() == Mode::own || before.mode() == Mode::moving)
      entry.exchange(before, before.with(Mode::unknown, before.spent()));
    // A look first: stores would cost the child its own pages.
    if (entry.file.is_mapped()) entry.file.forget();
  }
}

}  // namespace wherry::preload
