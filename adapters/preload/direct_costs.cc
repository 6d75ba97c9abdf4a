// SPDX-License-Identifier: Apache-2.0
#include "direct_costs.hpp"

#include <sys/resource.h>
#include <time.h>

#include <atomic>

namespace wherry::preload {
namespace {

using file::PathCosts;
using Transfer = PathCosts::Transfer;

constinit PathCosts costs;
constinit std::atomic<bool> asked_where{false};

std::uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Returns how often another thread has taken this one's core.
long preemptions() noexcept {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

void show_costs(const DirectUse& use) noexcept {
  if (asked_where.load(std::memory_order_relaxed) || asked_where.exchange(true, std::memory_order_relaxed)) return;
  costs.show_in(use.transfer_classes());
}

}  // namespace

ChosenWay::ChosenWay(const DirectUse& use, Kind kind, std::uint64_t offset, std::size_t bytes) noexcept {
  if (use.path() == files::Path::host) {
    choice_ = PathCosts::Choice{.way = Way::host, .explores = false};
    return;
  }
  show_costs(use);
  transfer_ = {
      .kind = kind, .bytes = bytes, .in_order = use.is_sequential(offset, bytes), .crowded = costs.is_crowded()};
  choice_ = costs.choose(transfer_);
  if (kind == Kind::miss && choice_->way == Way::host && !choice_->explores) {
    Transfer hit = transfer_;
    hit.kind = Kind::hit;
    const file::Reuse::Costs each{.past = costs.estimate(transfer_, Way::host),
                                  .through = costs.estimate(transfer_, Way::kernel),
                                  .hit = costs.estimate(hit, Way::kernel)};
    if (use.is_worth_filling(each, offset, bytes)) choice_->way = Way::kernel;
  }
  if (kind == Kind::hit && choice_->way == Way::kernel && !choice_->explores) use.expect_hits();
  preemptions_ = preemptions();
  begun_ = now_ns();
}

void ChosenWay::note(ssize_t moved) const noexcept {
  if (begun_ == 0 || moved != static_cast<ssize_t>(transfer_.bytes)) return;
  const std::uint64_t took = now_ns() - begun_;
  costs.note(transfer_, *choice_, took, preemptions() != preemptions_);
}

void forget_costs_after_fork() noexcept {
  costs.forget_after_fork();
  asked_where.store(false, std::memory_order_relaxed);
}

}  // namespace wherry::preload
