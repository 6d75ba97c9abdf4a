// SPDX-License-Identifier: Apache-2.0
#include "file/path_choice.hpp"

#include <algorithm>

namespace wherry::file {
namespace {

using wherry::files::Reason;

constexpr std::uint32_t kSamples = 8;  // that the mean is of
/// A reader that lost its core for a while says nothing about the way it went: one sample counts for no more than this
/// many times the mean.
constexpr double kMost = 4;
constexpr double kScale = 1 << 20;

/// A call on the other way at most every so often, and for so small a part of the time.
constexpr double kBetween = 128;
/// What is cached must be faster by so much that the filling is earned back within some passes.
constexpr double kWorthFilling = 0.95;
constexpr double kWorthTaking = 1.1;
/// Priors of a hit.
constexpr double kHit = 30;
constexpr double kHitByte = 0.022;
/// Which of the reads that miss are measured: all large ones, a share of the small, where two looks at the clock count.
constexpr std::size_t kAlwaysTimed = std::size_t{256} << 10;
constexpr std::uint32_t kTimed = 8;

}  // namespace

void PathChoice::Estimate::set(double ns, std::size_t bytes) {
  const double per_byte = ns / static_cast<double>(std::max<std::size_t>(bytes, 1)) * kScale;
  per_byte_.store(static_cast<std::uint64_t>(std::clamp(per_byte, 1.0, 1e18)), std::memory_order_relaxed);
}

void PathChoice::Estimate::add(double ns, std::size_t bytes) {
  const double before = of(bytes);
  const std::uint32_t samples = std::min(samples_.load(std::memory_order_relaxed) + 1, kSamples);
  samples_.store(samples, std::memory_order_relaxed);
  // The first takes the place of what was a guess.
  set(before + ((samples == 1 ? ns : std::min(ns, kMost * before)) - before) / samples, bytes);
}

double PathChoice::Estimate::of(std::size_t bytes) const {
  return static_cast<double>(per_byte_.load(std::memory_order_relaxed)) / kScale *
         static_cast<double>(std::max<std::size_t>(bytes, 1));
}

PathChoice::PathChoice(const Costs& priors) {
  for (std::size_t i = 0; i < kClasses; ++i) {
    const std::size_t bytes = std::size_t{1} << i;
    const auto size = static_cast<double>(bytes);
    hits_[i].set(kHit + kHitByte * size, bytes);
    straights_[i].set(priors.call + priors.byte * size, bytes);
    fills_[i].set(priors.filled_call + priors.filled_byte * size, bytes);
    hits_pay_[i].store(true, std::memory_order_relaxed);
  }
}

/// Whether the way that is not taken is tried now, which costs about `other`. Otherwise `calls` more go the way that is
/// taken, which cost `ns`.
bool PathChoice::Since::is_enough(double calls, double ns, double other) {
  const double calls_before = calls_.load(std::memory_order_relaxed);
  const double ns_before = ns_.load(std::memory_order_relaxed);
  const bool enough = calls_before >= kBetween && ns_before >= kBetween * other;
  calls_.store(enough ? 0 : calls_before + calls, std::memory_order_relaxed);
  ns_.store(enough ? 0 : ns_before + ns, std::memory_order_relaxed);
  return enough;
}

bool PathChoice::tries_straight(std::size_t bytes) {
  const double calls = hits_between(bytes);
  return hits_taken_[class_of(bytes)].is_enough(calls, calls * hit(bytes), straight(bytes));
}

bool PathChoice::tries_hit(std::size_t bytes) {
  return hits_taken_[class_of(bytes)].is_enough(1, straight(bytes), hit(bytes));
}

PathChoice::Choice PathChoice::choose(std::size_t bytes, bool in_order, std::size_t fetched) {
  const std::size_t place = class_of(bytes);
  const double straight_cost = straight(bytes);
  const double hit_cost = hit(bytes);
  Choice choice{.reason = Reason::cheaper};
  choice.admit = hit_cost < kWorthFilling * straight_cost;
  const std::uint32_t count = choices_[place].load(std::memory_order_relaxed);
  choices_[place].store(count + 1, std::memory_order_relaxed);
  choice.timed = bytes >= kAlwaysTimed || count % kTimed == 0;
  if (!in_order) return choice;
  // What follows takes its share of what is fetched.
  const double reads = static_cast<double>(std::max(fetched, bytes)) / static_cast<double>(bytes);
  const double whole_cost = filled(std::max(fetched, bytes)) + reads * hit_cost;
  choice.fill = whole_cost < kWorthFilling * reads * straight_cost;
  const bool explores = choice.fill ? since_[place].is_enough(reads, whole_cost, straight_cost)
                                    : since_[place].is_enough(1, straight_cost, whole_cost);
  if (explores) {
    choice.fill = !choice.fill;
    choice.reason = Reason::explored;
  }
  choice.timed = choice.timed || choice.fill || explores;
  return choice;
}

void PathChoice::compare_hits(std::size_t bytes) {
  const std::size_t place = class_of(bytes);
  hits_pay_[place].store(hit(bytes) < kWorthTaking * straight(bytes), std::memory_order_relaxed);
}

void PathChoice::measured_hit(std::size_t bytes, double ns) {
  hits_[class_of(bytes)].add(ns, bytes);
  compare_hits(bytes);
}

void PathChoice::measured_straight(std::size_t bytes, double ns) {
  straights_[class_of(bytes)].add(ns, bytes);
  compare_hits(bytes);
}

void PathChoice::measured_filled(std::size_t fetched, double ns) { fills_[class_of(fetched)].add(ns, fetched); }

}  // namespace wherry::file
