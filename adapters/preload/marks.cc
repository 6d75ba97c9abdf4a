// SPDX-License-Identifier: Apache-2.0
#include "marks.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "changes.hpp"
#include "descriptors.hpp"
#include "directories.hpp"
#include "next.hpp"
#include "signals_blocked.hpp"
#include "store.hpp"
#include "vfork.hpp"

namespace wherry::preload {
namespace {

// A bit for each number; standard output and standard error are set.
constexpr std::size_t kBits = 64;
constinit std::array<std::atomic<std::uint64_t>, kDescriptors / kBits> written_by_stdio{0b110};

bool is_written_by_stdio(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kDescriptors) return false;
  return (written_by_stdio[number / kBits].load(std::memory_order_relaxed) >> (number % kBits) & 1) != 0;
}

void set_written_by_stdio(int fd, bool written) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kDescriptors) return;
  const std::uint64_t bit = std::uint64_t{1} << (number % kBits);
  auto& word = written_by_stdio[number / kBits];
  if (written) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

void unmark(std::uint64_t mark) {
  file::Cache* const store = cache_if_ready();
  if (mark != 0 && store != nullptr) store->unmark({.entry = static_cast<std::uint32_t>(mark - 1)});
}

/// The mark in one number, 0: none.
std::uint64_t number_of(const file::Mark& mark) { return mark.entry == UINT32_MAX ? 0 : std::uint64_t{mark.entry} + 1; }

std::optional<file::Key> file_open_to_write(int fd) {
  const int error = errno;
  const int flags = WHERRY_NEXT(fcntl, fd, F_GETFL);
  errno = error;
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) return std::nullopt;
  const auto file = changed_file(fd);
  return file ? std::optional(file->key) : std::nullopt;
}

void mark_number(int fd) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || in_vfork_child()) return;
  std::uint64_t mark = 0;
  // A log that is the standard error of all processes of a job needs no mark: outside of the directories it is not
  // cached, unless it has another name or is moved while it is written.
  struct stat status{};
  const auto key = file_open_to_write(fd);
  if (key && fstat(fd, &status) == 0 && (status.st_nlink > 1 || lies_below(fd))) {
    if (file::Cache* const store = cache(); store != nullptr) mark = number_of(store->mark(*key));
  }
  unmark(entry->mark.exchange(mark, std::memory_order_relaxed));
}

// Files that this process has mapped to write, as long as there is room; then nothing is cached.
constexpr std::size_t kMostMapped = 128;
constinit std::array<file::Key, kMostMapped> mapped{};
constinit std::atomic<std::size_t> mapped_count{0};
constinit std::atomic<bool> adding{false};
constinit std::atomic<bool> all_marked{false};

// Children that execute a program that cannot be seen, and the mark of each.
struct Unseen {
  std::atomic<pid_t> pid{0};
  std::atomic<std::uint64_t> mark{0};
};
constinit std::array<Unseen, 64> unseen{};
constinit std::atomic<int> unseen_count{0};

}  // namespace

void stdio_writes(int fd) noexcept {
  set_written_by_stdio(fd, true);
  mark_number(fd);
}

void stdio_writes_no_more(int fd) noexcept { set_written_by_stdio(fd, false); }

void number_taken(int fd) noexcept {
  if (is_written_by_stdio(fd)) mark_number(fd);
}

MarkOfClosed::MarkOfClosed(int fd) noexcept {
  Entry* const entry = in_vfork_child() ? nullptr : entry_of(fd);
  if (entry != nullptr && entry->mark.load(std::memory_order_relaxed) != 0) {
    mark_ = entry->mark.exchange(0, std::memory_order_relaxed);
  }
}

MarkOfClosed::~MarkOfClosed() {
  if (mark_ != 0) unmark(mark_);
}

void mapped_to_write(int fd) noexcept {
  const auto key = file_open_to_write(fd);
  file::Cache* const store = key ? cache() : nullptr;
  if (store == nullptr) return;
  const SignalsBlocked blocked;
  while (adding.exchange(true, std::memory_order_acquire)) sched_yield();  // MAPPED acquire: the list
  const std::size_t count = mapped_count.load(std::memory_order_relaxed);
  bool known = false;
  for (std::size_t i = 0; i < count; i++) known = known || mapped[i] == *key;
  if (!known && count < kMostMapped) {
    (void)store->mark(*key);
    mapped[count] = *key;
    mapped_count.store(count + 1, std::memory_order_relaxed);
  }
  adding.store(false, std::memory_order_release);  // MAPPED release: the list
  if (!known && count == kMostMapped) writes_unseen();
}

void writes_unseen() noexcept {
  file::Cache* const store = cache();
  if (store != nullptr && !all_marked.exchange(true, std::memory_order_relaxed)) (void)store->mark_all();
}

void unseen_program_begins() noexcept {
  file::Cache* const store = cache();
  if (store == nullptr) return;
  const file::Mark mark = store->mark_all();
  // If the table is full, the mark stays as long as this process lives.
  for (Unseen& entry : unseen) {
    pid_t nobody = 0;
    if (!entry.pid.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed)) continue;
    entry.mark.store(number_of(mark), std::memory_order_relaxed);
    unseen_count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void unseen_program_is(pid_t child) noexcept {
  for (Unseen& entry : unseen) {
    pid_t here = getpid();
    if (entry.pid.compare_exchange_strong(here, child, std::memory_order_relaxed)) return;
  }
}

void unseen_program_ended(pid_t child) noexcept {
  if (unseen_count.load(std::memory_order_relaxed) == 0) return;
  for (Unseen& entry : unseen) {
    const std::uint64_t mark = entry.mark.load(std::memory_order_relaxed);
    pid_t wanted = child == 0 ? getpid() : child;
    if (!entry.pid.compare_exchange_strong(wanted, 0, std::memory_order_relaxed)) continue;
    unseen_count.fetch_sub(1, std::memory_order_relaxed);
    unmark(mark);
    return;
  }
}

void mark_standard_streams() noexcept {
  number_taken(STDOUT_FILENO);
  number_taken(STDERR_FILENO);
}

void repair_marks_after_fork() noexcept {
  for (Unseen& entry : unseen) entry.pid.store(0, std::memory_order_relaxed);
  unseen_count.store(0, std::memory_order_relaxed);
  adding.store(false, std::memory_order_relaxed);
  const bool all = all_marked.exchange(false, std::memory_order_relaxed);
  if (all) writes_unseen();
  const std::size_t count = mapped_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; i++) {
    if (file::Cache* const store = cache(); store != nullptr) (void)store->mark(mapped[i]);
  }
  for (int fd = 0; fd < highest_descriptor(); fd++) {
    Entry* const entry = entry_of(fd);
    // A look first: stores would cost the child its own pages.
    if (entry->mark.load(std::memory_order_relaxed) == 0) continue;
    entry->mark.store(0, std::memory_order_relaxed);
    mark_number(fd);
  }
}

}  // namespace wherry::preload
