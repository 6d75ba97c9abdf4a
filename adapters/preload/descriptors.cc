// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "direct_files.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/regions.hpp"
#include "next.hpp"
#include "report.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {
namespace {

// Pages of zeros take no memory until they are written to.
constinit std::array<Entry, kDescriptors> entries{};
constinit std::atomic<int> highest{0};
constinit std::atomic<int> set_up{0};  // one more than the descriptor that has a SetupLock; 0: none
constinit std::atomic<bool> no_setup{false};
constinit std::atomic<bool> stopped{false};

std::span<Entry> used_entries() { return std::span(entries).first(static_cast<std::size_t>(highest_descriptor())); }

}  // namespace

Entry* entry_of(int fd) noexcept {
  if (static_cast<unsigned>(fd) >= entries.size() || stopped.load(std::memory_order_relaxed)) return nullptr;
  int seen = highest.load(std::memory_order_relaxed);
  // SHARE-ALL barrier: a fork looks as far as this, or is seen after the open
  while (seen <= fd && !highest.compare_exchange_weak(seen, fd + 1, std::memory_order_seq_cst)) {
  }
  return &entries[static_cast<unsigned>(fd)];
}

void pause_for(long nanoseconds) noexcept {
  const timespec pause{.tv_sec = 0, .tv_nsec = nanoseconds};
  WHERRY_NEXT(syscall, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
}

State settled(const Entry& entry) noexcept {
  State state = entry.load();
  if (state.mode() != Mode::moving) return state;
  const int error = errno;
  wait_while([&] {
    state = entry.load();
    return state.mode() == Mode::moving;
  });
  errno = error;
  return state;
}

void forget(int fd) noexcept { remember(fd, Access::other); }

namespace {

/// Begins another generation of an entry. To be called before the mapping is removed (rule 3).
template <typename Next>
void begin_generation(Entry& entry, Next next) {
  State before = entry.load();
  while (!entry.exchange(before, next(before))) {
  }
}

/// The same, but the mode and the number stay. A move of the offset that is under way must find its own generation.
void begin_same_generation(Entry& entry) {
  State before = settled(entry);
  while (!entry.exchange(before, State::of(before.generation() + 1, before.mode(), before.number()))) {
    before = settled(entry);
  }
}

void unmap_file(int fd, Entry& entry) {
  if (entry.file.is_mapped()) entry.file.drop(static_cast<std::uintptr_t>(fd));
}

/// A holder that has not seen the new generation may be mapping the file: waits for it, and unmaps the file.
void unmap_file_of_last_generation(int fd, Entry& entry) {
  // SETUP barrier: the generation began before
  wait_while([fd] { return set_up.load(std::memory_order_seq_cst) == fd + 1; });
  unmap_file(fd, entry);
}

State begin_generation_of(Entry& entry, Mode mode) {
  State begun;
  begin_generation(entry, [&](State before) { return begun = State::of(before.generation() + 1, mode, 0); });
  return begun;
}

}  // namespace

void remember(int fd, Access access) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  entry->progress.store(0, std::memory_order_relaxed);
  entry->choice.store(Choice::none, std::memory_order_relaxed);
  entry->access.store(access, std::memory_order_relaxed);
  begin_generation_of(*entry, access == Access::other ? Mode::unknown : Mode::own);
  unmap_file_of_last_generation(fd, *entry);
  forget_ring(fd);
  forget_direct(fd);
  if (reports()) forget_reported(fd);
}

Closing::Closing(int fd) noexcept : entry_(in_vfork_child() ? nullptr : entry_of(fd)) {
  if (entry_ == nullptr) return;
  closes_number(fd);
  // The number may come back without an open that this library sees.
  entry_->access.store(Access::other, std::memory_order_relaxed);
  // After a transfer past a mount, which sets the offset: otherwise that of the number's next file.
  State before = settled(*entry_);
  while (!entry_->exchange(before, closing_ = State::of(before.generation() + 1, Mode::never, 0)))
    before = settled(*entry_);
  unmap_file_of_last_generation(fd, *entry_);
  forget_ring(fd);
  forget_direct(fd);
}

Closing::~Closing() {
  // This fails if the number was opened again.
  if (entry_ != nullptr) entry_->exchange(closing_, closing_.with(Mode::unknown, 0));
}

void never_track(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  entry->access.store(Access::other, std::memory_order_relaxed);
  begin_generation_of(*entry, Mode::never);
  unmap_file_of_last_generation(fd, *entry);
  forget_ring(fd);
  never_direct(fd);
}

void never_track(int fd, const SetupLock& /*held*/) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  begin_generation_of(*entry, Mode::never);
  unmap_file(fd, *entry);
}

void drop_mapping(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || !entry->file.is_mapped()) return;
  begin_same_generation(*entry);
  unmap_file(fd, *entry);
}

void drop_all_mappings() noexcept {
  for (int fd = 0; fd < highest_descriptor(); fd++) drop_mapping(fd);
}

void revoke_mapping(std::uintptr_t fd, std::uint32_t region) noexcept {
  Entry& entry = entries[fd];
  if (!entry.file.has_region(region)) return;
  begin_same_generation(entry);
  entry.file.forget();
}

void stop_tracking() noexcept {
  // Must happen while the closing of its descriptors is still noticed.
  if (!in_vfork_child()) end_direct();
  no_setup.store(true, std::memory_order_seq_cst);  // SETUP barrier: no further holder
  // SETUP barrier: no thread maps a file from now on; those that were mapped are seen
  wait_while([] { return set_up.load(std::memory_order_seq_cst) != 0; });
  // Until here, a thread that closes a descriptor unmaps its file itself.
  drop_all_mappings();
  for (int fd = 0; fd < highest_descriptor(); fd++) forget_ring(fd);
  stopped.store(true, std::memory_order_relaxed);
}

SetupLock::SetupLock(int fd) noexcept {
  int free = 0;
  // SETUP barrier, acquire: fields that the last holder stored
  held_ = set_up.compare_exchange_strong(free, fd + 1, std::memory_order_seq_cst);
  if (!held_ || !no_setup.load(std::memory_order_seq_cst)) return;  // SETUP barrier: the end of all setups
  set_up.store(0, std::memory_order_release);                       // SETUP release: nothing was stored
  held_ = false;
}

SetupLock::~SetupLock() {
  // SETUP release: this holder's fields
  if (held_) set_up.store(0, std::memory_order_release);
}

int highest_descriptor() noexcept {
  return highest.load(std::memory_order_seq_cst);  // SHARE-ALL barrier: what was opened before
}

void repair_descriptors_after_fork() noexcept {
  // A look first: stores would cost the child its own pages.
  if (set_up.load(std::memory_order_relaxed) != 0) set_up.store(0, std::memory_order_relaxed);
  file::mapped::forget_regions_after_fork();
  file::mapped::repair_faults_after_fork();
  forget_direct_after_fork();
  forget_rings_after_fork();
  for (Entry& entry : used_entries()) {
    State before = entry.load();
    // Another thread of the parent opened it just before the fork. The parent gives it up as well (sharing.cc).
    if (before.mode() == Mode::own || before.mode() == Mode::ring || before.mode() == Mode::moving)
      entry.exchange(before, before.with(Mode::unknown, before.spent()));
    // A look first: stores would cost the child its own pages.
    if (entry.file.is_mapped()) entry.file.forget();
  }
}

}  // namespace wherry::preload
