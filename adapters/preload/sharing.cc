// SPDX-License-Identifier: Apache-2.0
#include "sharing.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "file/mapped/signals_blocked.hpp"
#include "next.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {

constinit thread_local bool detail::in_vfork_child __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local bool detail::vfork_child_is_filtered __attribute__((tls_model("initial-exec"))) = false;

namespace {

// Number of threads that are about to fork or to exec.
constinit std::atomic<int> sharing_all{0};

/// Sets the kernel's offset. Returns false if another thread moved the descriptor first.
bool move(int fd, Entry& entry, State before, Mode after) noexcept {
  const file::mapped::SignalsBlocked blocked;
  if (!entry.exchange(before, before.with(Mode::moving, before.number()))) return false;
  const auto offset = before.mode() == Mode::ring ? end_ring(fd) : static_cast<off_t>(before.number());
  if (offset) WHERRY_NEXT(lseek, fd, *offset, SEEK_SET);
  State moving = before.with(Mode::moving, before.number());
  entry.exchange(moving, before.with(after, 0));
  return true;
}

}  // namespace

void share_offset(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  const int error = errno;
  while (true) {
    State before = settled(*entry);
    if (before.mode() == Mode::user || before.mode() == Mode::ring) {
      move(fd, *entry, before, Mode::shared);
    } else if (before.mode() != Mode::own || entry->exchange(before, before.with(Mode::unknown, before.spent()))) {
      break;
    }
  }
  errno = error;
}

void return_offset(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  const int error = errno;
  const State before = settled(*entry);
  if (before.mode() == Mode::ring) move(fd, *entry, before, Mode::own);
  // SHARE-ALL barrier: a fork that has not seen this mode is seen here
  if (sharing_all.load(std::memory_order_seq_cst) != 0) share_offset(fd);
  errno = error;
}

void before_mapping(int fd) noexcept {
  const Entry* const entry = entry_of(fd);
  if (entry != nullptr && entry->access.load(std::memory_order_relaxed) == Access::both) share_offset(fd);
}

void all_shared_from_now() noexcept {
  // SHARE-ALL barrier: an open that does not see this count is seen below
  sharing_all.fetch_add(1, std::memory_order_seq_cst);
  const int end = highest_descriptor();
  for (int fd = 0; fd < end; fd++) share_offset(fd);
}

bool is_sharing_all() noexcept { return sharing_all.load(std::memory_order_relaxed) != 0; }

void all_shared_no_more() noexcept { sharing_all.fetch_sub(1, std::memory_order_relaxed); }

// The child of a vfork would count in its parent's memory and never count down. The parent has counted for it.
AllShared::AllShared() noexcept : counted_(!in_vfork_child()) {
  if (counted_) all_shared_from_now();
}

AllShared::~AllShared() {
  if (counted_) all_shared_no_more();
}

void share_all_for_good() noexcept {
  all_shared_from_now();
  stop_tracking();
}

void opened_alone(int fd, Access access) noexcept {
  remember(fd, access);
  // SHARE-ALL barrier: a fork that has not seen this descriptor is seen here
  if (sharing_all.load(std::memory_order_seq_cst) != 0) share_offset(fd);
}

void own_offset(int fd, Entry& entry, State before) noexcept {
  if (before.mode() != Mode::own || before.inside() != 0) return;
  const file::mapped::SignalsBlocked blocked;
  const State moving = before.with(Mode::moving, before.number());
  if (!entry.exchange(before, moving)) return;
  // From here on other threads wait, and none is in the kernel's call.
  const off_t offset = WHERRY_NEXT(lseek, fd, 0, SEEK_CUR);
  const bool fits = offset >= 0 && static_cast<std::uint64_t>(offset) < State::kNumbers;
  State there = moving;
  entry.exchange(there,
                 fits ? before.with(Mode::user, static_cast<std::uint64_t>(offset)) : before.with(Mode::shared, 0));
}

void repair_sharing_after_fork() noexcept { sharing_all.store(1, std::memory_order_relaxed); }

}  // namespace wherry::preload
