// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"

#include "descriptors.hpp"
#include "directories.hpp"
#include "next.hpp"
#include "vfork.hpp"

namespace wherry::preload {
namespace {

constexpr unsigned kTargetBits = 8;

std::uint64_t target_word(State state, Target target) {
  return state.generation() << kTargetBits | static_cast<std::uint64_t>(target);
}

/// Asks the kernel, and stores what it says where there is an entry.
std::optional<Changed> ask(int fd, Entry* entry, State state) {
  const int error = errno;
  struct stat status{};
  const bool here = fstat(fd, &status) == 0 && on_cached_device(status);
  const bool appends = here && (WHERRY_NEXT(fcntl, fd, F_GETFL) & O_APPEND) != 0;
  errno = error;
  if (const SetupLock lock; lock && entry != nullptr && entry->load().generation() == state.generation()) {
    const Target target = !here ? Target::elsewhere : appends ? Target::end : Target::here;
    entry->device.store(status.st_dev, std::memory_order_relaxed);
    entry->inode.store(status.st_ino, std::memory_order_relaxed);
    // TARGET release: the file's numbers
    entry->target.store(target_word(state, target), std::memory_order_release);
  }
  if (!here) return std::nullopt;
  return Changed{.key = file::Key(status), .appends = appends};
}

}  // namespace

std::optional<Changed> changed_file(int fd) noexcept {
  if (!any_directories()) return std::nullopt;
  Entry* const entry = in_vfork_child() ? nullptr : entry_of(fd);
  if (entry == nullptr) return ask(fd, nullptr, {});
  const State state = entry->load();
  // TARGET acquire: the file's numbers
  const std::uint64_t target = entry->target.load(std::memory_order_acquire);
  if (target == target_word(state, Target::elsewhere)) return std::nullopt;
  const bool appends = target == target_word(state, Target::end);
  if (!appends && target != target_word(state, Target::here)) return ask(fd, entry, state);
  const file::Key key(entry->device.load(std::memory_order_relaxed), entry->inode.load(std::memory_order_relaxed));
  if (entry->load().generation() != state.generation()) return ask(fd, nullptr, {});
  return Changed{.key = key, .appends = appends};
}

std::optional<Changed> changed_file(const char* path) noexcept {
  if (!any_directories()) return std::nullopt;
  const int error = errno;
  struct stat status{};
  const bool here = stat(path, &status) == 0 && on_cached_device(status);
  errno = error;
  if (!here) return std::nullopt;
  return Changed{.key = file::Key(status), .appends = false};
}

void flags_changed(int fd) noexcept {
  Entry* const entry = in_vfork_child() ? nullptr : entry_of(fd);
  if (entry != nullptr) entry->target.store(0, std::memory_order_relaxed);
}

void truncated_by_open(int fd) noexcept {
  change(changed_file(fd), {}, [] { return 0; });
}

}  // namespace wherry::preload
