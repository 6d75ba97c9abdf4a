// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wherry::bench {
namespace {

/// Noise of 20 % to either side makes a factor of 1.5 between two probes of one placement. Placements differ by 1.8 and
/// more in one of the two measurements.
const double kAlike = std::log(1.5);
/// So many probes are tried as the middle of a placement, however many there are.
constexpr std::size_t kMostMiddles = 200;
constexpr int kRounds = 3;

/// A probe as logarithms: equal ratios are equal distances.
struct Spot {
  double round_trip = 0;
  double copy = 0;
};

Spot spot_of(const Probe& probe) { return {std::log(probe.round_trip_ns), std::log(probe.copy_gb_s)}; }

double distance(const Spot& one, const Spot& other) {
  return std::max(std::abs(one.round_trip - other.round_trip), std::abs(one.copy - other.copy));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Spot middle_of(std::span<const Spot> spots, std::span<const std::size_t> members) {
  std::vector<double> round_trips;
  std::vector<double> copies;
  for (const std::size_t member : members) {
    round_trips.push_back(spots[member].round_trip);
    copies.push_back(spots[member].copy);
  }
  return {median(std::move(round_trips)), median(std::move(copies))};
}

/// Those of `rest` that are alike with `middle`, or, with `inverse`, all others.
std::vector<std::size_t> alike(std::span<const Spot> spots, std::span<const std::size_t> rest, const Spot& middle,
                               bool inverse = false) {
  std::vector<std::size_t> found;
  for (const std::size_t one : rest) {
    if ((distance(spots[one], middle) < kAlike) != inverse) found.push_back(one);
  }
  return found;
}

/// The largest group of probes that are alike with one of them; then the largest of the rest, until none is left.
std::vector<Spot> find_middles(std::span<const Spot> spots) {
  std::vector<Spot> middles;
  std::vector<std::size_t> rest(spots.size());
  std::iota(rest.begin(), rest.end(), 0);
  while (!rest.empty()) {
    std::vector<std::size_t> largest;
    Spot seed;
    const std::size_t step = 1 + (rest.size() - 1) / kMostMiddles;
    for (std::size_t i = 0; i < rest.size(); i += step) {
      std::vector<std::size_t> group = alike(spots, rest, spots[rest[i]]);
      if (group.size() <= largest.size()) continue;
      largest = std::move(group);
      seed = spots[rest[i]];
    }
    middles.push_back(middle_of(spots, largest));
    rest = alike(spots, rest, seed, true);
  }
  return middles;
}

std::size_t nearest(const Spot& spot, std::span<const Spot> middles) {
  const auto closer = [&](const Spot& one, const Spot& other) { return distance(spot, one) < distance(spot, other); };
  return static_cast<std::size_t>(std::min_element(middles.begin(), middles.end(), closer) - middles.begin());
}

/// The members of each placement when every probe belongs to the middle that is nearest.
std::vector<std::vector<std::size_t>> members_of(std::span<const Spot> spots, std::span<const Spot> middles) {
  std::vector<std::vector<std::size_t>> members(middles.size());
  for (std::size_t i = 0; i < spots.size(); ++i) members[nearest(spots[i], middles)].push_back(i);
  std::erase_if(members, [](const auto& one) { return one.empty(); });
  return members;
}

}  // namespace

Placements classify(std::span<const Probe> probes) {
  std::vector<Spot> spots;
  for (const Probe& probe : probes) spots.push_back(spot_of(probe));
  std::vector<Spot> middles = find_middles(spots);
  std::vector<std::vector<std::size_t>> members = members_of(spots, middles);
  // The first group may have taken probes that lie between it and the next: middles move away from each other.
  for (int round = 0; round < kRounds; ++round) {
    middles.clear();
    for (const auto& one : members) middles.push_back(middle_of(spots, one));
    members = members_of(spots, middles);
  }
  // Of two as large as each other that which was seen first.
  std::sort(members.begin(), members.end(), [](const auto& one, const auto& other) {
    return one.size() != other.size() ? one.size() > other.size() : one.front() < other.front();
  });
  Placements result{.of = std::vector<std::size_t>(probes.size())};
  for (const auto& one : members) {
    const Spot middle = middle_of(spots, one);
    for (const std::size_t member : one) result.of[member] = result.found.size();
    result.found.push_back({{std::exp(middle.round_trip), std::exp(middle.copy)}, one.size()});
  }
  return result;
}

bool is_of_largest(const Placements& placements, const Probe& probe) {
  if (placements.found.empty()) return true;
  std::vector<Spot> middles;
  for (const Placement& one : placements.found) middles.push_back(spot_of(one.middle));
  const Spot spot = spot_of(probe);
  return distance(spot, middles.front()) < kAlike && nearest(spot, middles) == 0;
}

}  // namespace wherry::bench
