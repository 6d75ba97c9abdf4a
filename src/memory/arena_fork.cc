// SPDX-License-Identifier: Apache-2.0
// The arena's handlers of fork: they give the child private copies of the memory that its parent exposed.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "memory/arena.hpp"
#include "memory/other_stack.hpp"
#include "memory/store_guard.hpp"

namespace wherry::memory {
namespace {

Arena* forking = nullptr;  ///< the arena that is locked while this process forks; guarded by views_mutex()
/// During a fork: a pipe that ends when the child has its copies, or is dead. -1: the parent does not wait.
std::array<int, 2> copies_made{-1, -1};

/// The caller's mappings of the arena when the fork began. The child cannot find them itself. That takes a descriptor,
/// and memory from a heap that it may share with its parent until it has its copies. Guarded by views_mutex().
std::optional<std::vector<MappedRange>>& mappings_before() {
  static auto& mappings = *new std::optional<std::vector<MappedRange>>;
  return mappings;
}

/// Returns the lowest address of the stack, and its end. {0, 0}: they are unknown.
std::pair<std::uintptr_t, std::uintptr_t> stack_of_this_thread() {
  pthread_attr_t attributes;
  void* start = nullptr;
  std::size_t bytes = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  ::pthread_attr_getstack(&attributes, &start, &bytes);
  ::pthread_attr_destroy(&attributes);
  const auto end = reinterpret_cast<std::uintptr_t>(start) + bytes;
  if (::gettid() != ::getpid()) return {end - bytes, end};
  // For the first thread, glibc reports only the part above the last mapping within the stack's limit. No other memory
  // lies that near below the stack.
  constexpr rlim_t kMost = rlim_t{64} << 20;
  rlimit most{};
  ::getrlimit(RLIMIT_STACK, &most);
  return {end - std::min(most.rlim_cur, kMost), end};
}

/// Replaces shared pages by private pages with the same content. Meanwhile a guard, if it can, makes stores of other
/// threads wait. A forked child has no other threads.
void make_private(const MappedRange& range, const StoreGuard* guard = nullptr) {
  auto* const start = std::bit_cast<std::byte*>(range.start);
  const std::size_t bytes = range.end - range.start;
  void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  // Maps the same pages at another address. At `start` there may be freed memory or an ended stack frame, and
  // AddressSanitizer forbids reading it.
  void* const pages = ::mremap(start, 0, bytes, MREMAP_MAYMOVE);
  if (pages == MAP_FAILED) {
    ::munmap(copy, bytes);
    return;
  }
  if ((range.protection & PROT_READ) == 0) ::mprotect(pages, bytes, PROT_READ);
  const bool held = guard != nullptr && guard->hold({start, bytes}) == 0;
  std::memcpy(copy, pages, bytes);
  ::munmap(pages, bytes);
  ::mprotect(copy, bytes, range.protection);
  ::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start);
  if (held) guard->release({start, bytes});
}

}  // namespace

void Arena::handle_forks() {
  [[maybe_unused]] static const int handled = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void Arena::before_fork() {
  making().lock();
  Arena* const arena = current().load();
  if (arena != nullptr) arena->mutex_.lock();
  views_mutex().lock();
  forking = arena;
  copies_made = {-1, -1};
  if (arena == nullptr || arena->cursor_ == 0) return;
  if (::pipe2(copies_made.data(), O_CLOEXEC) != 0) copies_made = {-1, -1};
  try {
    mappings_before() = arena->callers_mappings(arena->map_);
    if (mappings_before() && arena->leave_this_stack(*mappings_before())) {
      mappings_before() = arena->callers_mappings(arena->map_);
    }
  } catch (const std::exception&) {  // a handler of fork cannot report it: the child then has no copies
    mappings_before().reset();
  }
}

/// Makes idle pages private that now hold stack frames of the forking thread. Otherwise parent and child would run on
/// the same pages for a moment, and destroy each other's frames. Returns whether any pages became private.
bool Arena::leave_this_stack(const std::vector<MappedRange>& mappings) const {
  if (used_.idle_bytes() == 0) return false;
  const auto [stack_start, stack_end] = stack_of_this_thread();
  std::vector<MappedRange> found;
  for (const MappedRange& range : mappings) {
    for (const auto& idle : used_.idle()) {
      const std::uint64_t first = std::max(range.offset, idle.start);
      const std::uint64_t last = std::min(range.offset_of(range.end), idle.end);
      if (first >= last) continue;
      MappedRange part = range;
      part.start = std::max(range.start + (first - range.offset), stack_start);
      part.end = std::min(range.start + (last - range.offset), stack_end);
      if (part.start < part.end) found.push_back(part);
    }
  }
  if (found.empty()) return false;
  // On another stack, so this thread writes nothing on the old one between the copying of a page and its exchange.
  const StoreGuard guard;
  return on_other_stack([&] {
    for (const MappedRange& range : found) make_private(range, &guard);
  });
}

void Arena::after_fork_in_parent() {
  Arena* const arena = forking;
  if (copies_made[0] >= 0) {
    ::close(copies_made[1]);
    std::byte nothing{};
    while (::read(copies_made[0], &nothing, 1) < 0 && errno == EINTR) continue;
    ::close(copies_made[0]);
  }
  mappings_before().reset();
  views_mutex().unlock();
  if (arena != nullptr) arena->mutex_.unlock();
  making().unlock();
}

/// Makes the child's copies. The parent's fork returns only after that, since stores of one must not reach the other.
/// Where there is no memory for a copy, they do. The copies may contain what peers and other threads store meanwhile.
void Arena::after_fork_in_child() {
  Arena* const parents = forking;
  current() = nullptr;
  if (mappings_before()) std::ranges::for_each(*mappings_before(), [](const auto& range) { make_private(range); });
  mappings_before().reset();
  for (const int end : copies_made) {
    if (end >= 0) ::close(end);
  }
  views_mutex().unlock();
  if (parents != nullptr) parents->mutex_.unlock();
  making().unlock();
}

}  // namespace wherry::memory
