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

constinit PathCosts costs;
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
  choice_ = costs.choose(transfer_);
  if (kind == Kind::miss && choice_->way == Way::host && !choice_->explores &&
      use.is_worth_filling(costs_of_read(transfer_), offset, bytes))
    choice_->way = Way::kernel;
  if (kind == Kind::hit && choice_->way == Way::kernel && !choice_->explores) use.expect_hits();
  const bool is_measured = kind != Kind::write || (use.is_measured() && use.is_warm(true));
  if (kind == Kind::write && choice_->way == Way::kernel) {
    // The kernel's way is not measured while the file is open at the server.
    if (is_measured && !choice_->explores) return;
    choice_ = PathCosts::Choice{.way = Way::host, .explores = false};
    is_forced_ = true;
  }
  begin(use);
}

ChosenWay ChosenWay::before_opening(std::size_t bytes) noexcept {
  note_core();
  ChosenWay way;
  way.transfer_ = {.kind = Kind::write, .bytes = bytes, .in_order = kWritesInOrder, .crowded = costs.is_crowded()};
  way.choice_ = costs.choose(way.transfer_);
  way.begin();
  return way;
}

void ChosenWay::begin(const DirectUse& use) noexcept {
  is_typical_ = choice_->way == Way::kernel || use.is_warm(transfer_.kind == Kind::write);
  begin();
}

void ChosenWay::begin() noexcept { begun_ = now_ns(); }

void ChosenWay::note(ssize_t moved) const noexcept {
  if (begun_ == 0 || moved != static_cast<ssize_t>(transfer_.bytes)) return;
  const std::uint64_t took = now_ns() - begun_;
  costs.note(transfer_, *choice_, took, is_typical_);
}

void forget_costs_after_fork() noexcept {
  costs.forget_after_fork();
  asked_where.store(false, std::memory_order_relaxed);
}

}  // namespace wherry::preload
