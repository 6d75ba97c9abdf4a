// SPDX-License-Identifier: Apache-2.0
#include "direct_costs.hpp"

#include <time.h>

#include <atomic>

#include "core_time.hpp"

namespace wherry::preload {
namespace {

using file::PathCosts;
using Way = PathCosts::Way;
using Transfer = PathCosts::Transfer;

/// The kernel reads ahead, but writes in any order take the same time.
constexpr bool kWritesInOrder = true;

/// Writes of an attempt to measure the slower way. The mount asks the server at the fourth write whether it may keep
/// them, so the first four do not tell how long the others take.
constexpr std::uint32_t kAttemptWrites = 8;
constexpr std::uint32_t kFirstWrites = 4;
/// About what it takes to open a file at the server again.
constexpr std::uint64_t kReopeningNs = 200'000;

/// Consecutive writes of one descriptor that measure the slower way. One attempt at a time; a new one ends the last.
class WriteAttempt {
 public:
  struct Next {
    Way way;
    bool is_typical;
  };
  /// The caller makes the first write.
  void begin(int fd, Way way) noexcept { word_.store(of(fd, way, kAttemptWrites - 1), std::memory_order_relaxed); }
  /// Returns how the descriptor's next write is made. Nothing: no attempt is under way.
  std::optional<Next> take(int fd) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (word % kMostLeft != 0 && word / kMostLeft / 2 == static_cast<std::uint64_t>(fd)) {
      if (!word_.compare_exchange_weak(word, word - 1, std::memory_order_relaxed)) continue;
      return Next{.way = word / kMostLeft % 2 == 0 ? Way::host : Way::kernel,
                  .is_typical = word % kMostLeft <= kAttemptWrites - kFirstWrites};
    }
    return std::nullopt;
  }
  void forget_after_fork() noexcept {
    if (word_.load(std::memory_order_relaxed) != 0) word_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kMostLeft = 256;
  static std::uint64_t of(int fd, Way way, std::uint64_t left) {
    return (static_cast<std::uint64_t>(fd) * 2 + (way == Way::host ? 0 : 1)) * kMostLeft + left;
  }
  std::atomic<std::uint64_t> word_{0};  ///< descriptor, way, and number of writes left
};

constinit PathCosts costs;
constinit WriteAttempt write_attempt;
constinit std::atomic<bool> asked_where{false};

std::uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void show_costs(const DirectUse& use) noexcept {
  if (asked_where.load(std::memory_order_relaxed) || asked_where.exchange(true, std::memory_order_relaxed)) return;
  costs.show_in(use.transfer_classes());
}

void note_core() noexcept {
  if (const auto more = more_core_time()) costs.note_core(more->ran_ns, more->waited_ns);
}

/// For a read whose pages are missing. The kernel reads ahead for reads in order, so most of those are hits.
file::Reuse::Costs costs_of_read(const Transfer& miss) noexcept {
  constexpr std::uint64_t kReadAhead = std::uint64_t{1} << 20;  // at most: 128 KiB if the mount's user is not root
  Transfer there = miss;
  there.kind = ChosenWay::Kind::hit;
  file::Reuse::Costs each{.past = costs.estimate(miss, Way::host),
                          .through = costs.estimate(miss, Way::kernel),
                          .hit = costs.estimate(there, Way::kernel)};
  if (miss.in_order && miss.bytes < kReadAhead && each.through > each.hit)
    each.through = each.hit + (each.through - each.hit) * miss.bytes / kReadAhead;
  return each;
}

}  // namespace

ChosenWay::ChosenWay(const DirectUse& use, Kind kind, std::uint64_t offset, std::size_t bytes) noexcept {
  if (use.path() == files::Path::host) {
    choice_ = PathCosts::Choice{.way = Way::host, .explores = false};
    return;
  }
  show_costs(use);
  note_core();
  costs.note_server(use.is_shared());
  transfer_ = {.kind = kind,
               .bytes = bytes,
               .in_order = kind == Kind::write ? kWritesInOrder : use.is_sequential(offset, bytes),
               .crowded = costs.is_crowded()};
  if (kind == Kind::write) {
    choose_for_write(use);
  } else {
    choose_for_read(use, offset);
  }
}

void ChosenWay::choose_for_read(const DirectUse& use, std::uint64_t offset) noexcept {
  choice_ = costs.choose(transfer_);
  if (transfer_.kind == Kind::miss && choice_->way == Way::host && !choice_->explores &&
      use.is_worth_filling(costs_of_read(transfer_), offset, transfer_.bytes))
    choice_->way = Way::kernel;
  if (transfer_.kind == Kind::hit && choice_->way == Way::kernel && !choice_->explores)
    (void)expect_hits(use.descriptor());
  begin(use);
}

void ChosenWay::choose_for_write(const DirectUse& use) noexcept {
  choose_for_write(use.descriptor());
  const bool is_measured = use.is_measured() && use.is_warm(true);
  if (is(Way::kernel) && !choice_->explores) {
    // The kernel's way is not measured while the file is open at the server.
    if (is_measured) return;
    choice_ = costs.force(transfer_, Way::host);
  }
  begin(use);
}

ChosenWay ChosenWay::before_opening(int fd, std::size_t bytes) noexcept {
  note_core();
  ChosenWay way;
  way.transfer_ = {.kind = Kind::write, .bytes = bytes, .in_order = kWritesInOrder, .crowded = costs.is_crowded()};
  way.choose_for_write(fd);
  way.begin();
  return way;
}

void ChosenWay::choose_for_write(int fd) noexcept {
  if (const auto next = write_attempt.take(fd)) {
    choice_ = PathCosts::Choice{.way = next->way, .explores = true};
    is_typical_ = next->is_typical;
    return;
  }
  choice_ = costs.choose(transfer_, {.calls = kAttemptWrites, .switching_ns = kReopeningNs});
  if (!choice_->explores) return;
  write_attempt.begin(fd, choice_->way);
  is_typical_ = false;
}

void ChosenWay::begin(const DirectUse& use) noexcept {
  if (choice_->way == Way::host) is_typical_ = use.is_warm(transfer_.kind == Kind::write);
  begin();
}

void ChosenWay::begin() noexcept { begun_ = now_ns(); }

void ChosenWay::note(ssize_t moved, bool typical) const noexcept {
  if (begun_ == 0 || moved != static_cast<ssize_t>(transfer_.bytes)) return;
  const std::uint64_t took = now_ns() - begun_;
  costs.note(transfer_, *choice_, took, is_typical_ && typical);
}

void forget_costs_after_fork() noexcept {
  costs.forget_after_fork();
  write_attempt.forget_after_fork();
  asked_where.store(false, std::memory_order_relaxed);
}

}  // namespace wherry::preload
