// SPDX-License-Identifier: Apache-2.0
#include "memory/page_exchange.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cerrno>

#include "memory/other_stack.hpp"
#include "memory/store_guard.hpp"
#include "memory/touched_pages.hpp"

namespace wherry::memory {
namespace {

using Pages = std::bitset<TouchedPages::kMost>;

/// Pages exchanged at once while stores wait, and while they do not.
constexpr std::size_t kGuardedPages = TouchedPages::kMost;
constexpr std::size_t kUnguardedPages = 16;
/// Most times that a part is copied again because of new stores, before it is exchanged anyway.
constexpr int kMostLooks = 4;

/// Runs on another stack, and stores nowhere else while pages are held. Its reads of the memory are hidden from the
/// sanitizers, which would report the stores of other threads, and freed heap memory.
class Exchanger {
 public:
  explicit Exchanger(const PageExchange& exchange) noexcept : exchange_(exchange) {}

  [[nodiscard]] Exchanged all() const noexcept {
    Exchanged done;
    if (exchange_.is_plain) done.guard_error = guard_.shortage();
    if (done.guard_error != 0) return done;
    while (done.bytes < exchange_.memory.size() && done.copy_error == 0 && done.map_error == 0) next(done);
    return done;
  }

 private:
  struct Part {
    std::size_t from;
    std::size_t to;
  };

  [[nodiscard]] std::span<std::byte> memory(const Part& part) const {
    return exchange_.memory.subspan(part.from, part.to - part.from);
  }
  void next(Exchanged& done) const noexcept;
  [[nodiscard]] Part up_to(std::size_t from, std::size_t pages) const;
  [[nodiscard]] Part before_own_words(const Part& part) const;
  int map(const Part& part, bool has_pages) const noexcept;
  [[nodiscard]] Pages touched_since(const Part& part, const Pages& before) const noexcept;
  int copy(const Part& part, const Pages& wanted) const noexcept;
  int look_again(const Part& part) const noexcept;
  int write(const Part& part) const noexcept;
  [[nodiscard]] bool is_zero(std::size_t at) const noexcept;
  [[nodiscard]] bool is_copied(std::size_t at) const noexcept;
  template <class Test>
  Pages pages_that(const Part& part, const Pages& pages, Test&& test) const noexcept;

  const PageExchange& exchange_;
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const StoreGuard::Words own_words_ = StoreGuard::own_words();
  const StoreGuard guard_;
  const TouchedPages touched_;
};

Exchanger::Part Exchanger::up_to(std::size_t from, std::size_t pages) const {
  return {.from = from, .to = std::min(from + pages * page_, exchange_.memory.size())};
}

/// Returns the part before this thread's own words, which cannot be held. If it begins with them: the part up to their
/// end.
Exchanger::Part Exchanger::before_own_words(const Part& part) const {
  const auto start = std::bit_cast<std::uintptr_t>(exchange_.memory.data());
  const auto place_of = [&](std::uintptr_t address) {
    return std::clamp(address, start + part.from, start + part.to) - start;
  };
  const Part own{.from = place_of(own_words_.start), .to = place_of(own_words_.end)};
  if (own.from == own.to) return part;
  return {.from = part.from, .to = own.from == part.from ? own.to : own.from};
}

void Exchanger::next(Exchanged& done) const noexcept {
  Part part{.from = done.bytes, .to = exchange_.memory.size()};
  Pages wanted = Pages().set();
  bool held = false;
  if (exchange_.is_plain) {
    part = up_to(part.from, kGuardedPages);
    part = before_own_words(part);
    wanted = touched_.in(memory(part));
    const int refused = guard_.hold(memory(part));
    if (refused == ENOMEM) {
      done.map_error = ENOMEM;
      return;
    }
    held = refused == 0;
    if (held && wanted.count() != (part.to - part.from) / page_) wanted |= touched_since(part, wanted);
    if (!held) {
      part = up_to(part.from, std::min(kUnguardedPages, (part.to - part.from) / page_));
      wanted = touched_.in(memory(part));
    }
  }
  done.copy_error = copy(part, wanted);
  if (done.copy_error == 0 && exchange_.is_plain && !held) done.copy_error = look_again(part);
  if (done.copy_error == 0) done.map_error = map(part, wanted.any());
  if (done.copy_error == 0 && done.map_error == 0) done.bytes = part.to;
  if (held) guard_.release(memory(part));
}

/// Maps a part's place of the arena over the part. Prefaults it if it has pages and the whole memory is not too large.
int Exchanger::map(const Part& part, bool has_pages) const noexcept {
  const bool few = exchange_.memory.size() <= ArenaView::kMostAhead || exchange_.advice.locked;
  const int ahead = (has_pages || exchange_.has_huge) && few ? MAP_POPULATE : 0;
  const std::span<std::byte> where = memory(part);
  // Not mmap(): ThreadSanitizer takes that for a store by this thread to all of the part.
  const long mapped =
      ::syscall(SYS_mmap, where.data(), where.size(), exchange_.protection, MAP_SHARED | MAP_FIXED | ahead,
                exchange_.arena.descriptor(), static_cast<off_t>(exchange_.place + part.from));
  if (mapped == -1) return errno;
  give(exchange_.advice, where);
  return 0;
}

/// Returns the pages of a held part that were touched after `before` was determined.
Pages Exchanger::touched_since(const Part& part, const Pages& before) const noexcept {
  return pages_that(part, touched_.in(memory(part), true) & ~before, [this](std::size_t at) { return !is_zero(at); });
}

/// Returns the pages of `pages` for which `test(offset)` is true.
template <class Test>
Pages Exchanger::pages_that(const Part& part, const Pages& pages, Test&& test) const noexcept {
  Pages found;
  for (std::size_t i = 0, at = part.from; at < part.to; ++i, at += page_) found.set(i, pages.test(i) && test(at));
  return found;
}

/// Copies a part's wanted pages to their place, by pwrite: the kernel reports unreadable memory, and need not clear
/// pages that it overwrites.
int Exchanger::copy(const Part& part, const Pages& wanted) const noexcept {
  if (wanted.all()) return write(part);
  for (std::size_t i = 0, at = part.from; at < part.to;) {
    const std::size_t first = at;
    while (at < part.to && wanted.test(i)) ++i, at += page_;
    if (const int error = at == first ? 0 : write({.from = first, .to = at}); error != 0) return error;
    while (at < part.to && !wanted.test(i)) ++i, at += page_;
  }
  return 0;
}

/// Copies pages again that have changed since their copy, until none has, or kMostLooks times.
int Exchanger::look_again(const Part& part) const noexcept {
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const Pages changed =
        pages_that(part, touched_.in(memory(part)), [this](std::size_t at) { return !is_copied(at); });
    if (changed.none()) return 0;
    if (const int error = copy(part, changed); error != 0) return error;
  }
  return 0;
}

int Exchanger::write(const Part& part) const noexcept {
  for (std::size_t at = part.from; at < part.to;) {
    // Not pwrite() of the C library: it is a cancellation point, and ThreadSanitizer intercepts it.
    const long n = ::syscall(SYS_pwrite64, exchange_.arena.descriptor(), &exchange_.memory[at], part.to - at,
                             static_cast<off_t>(exchange_.place + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno == EFAULT ? EFAULT : ENOMEM;
    at += static_cast<std::size_t>(n);
  }
  return 0;
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool Exchanger::is_zero(std::size_t at) const noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(&exchange_.memory[at]);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < page_ / sizeof *words; ++i) bits |= words[i];
  return bits == 0;
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool Exchanger::is_copied(std::size_t at) const noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(&exchange_.memory[at]);
  const auto* const copies = reinterpret_cast<const std::uint64_t*>(exchange_.view + at);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < page_ / sizeof *words; ++i) bits |= words[i] ^ copies[i];
  return bits == 0;
}

}  // namespace

Exchanged exchange_pages(const PageExchange& exchange) noexcept {
  const Exchanger exchanger(exchange);
  Exchanged done;
  if (!on_other_stack([&] {
        const Exchanged result = exchanger.all();
        done = result;
      })) {
    done.copy_error = ENOMEM;
  }
  return done;
}

}  // namespace wherry::memory
