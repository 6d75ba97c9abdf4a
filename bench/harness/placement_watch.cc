// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement_watch.hpp"

#include <fmt/format.h>

#include <thread>

#include "base/clock.hpp"
#include "bench/harness/table.hpp"

namespace wherry::bench {
namespace {

/// The probe after one sample is that before the next.
constexpr std::uint64_t kFreshNs = 10'000'000;

std::size_t probes_of(const std::vector<Placement>& found) {
  std::size_t sum = 0;
  for (const Placement& one : found) sum += one.probes;
  return sum;
}

std::string share_of(const Placement& one, std::size_t all) {
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(one.probes) / static_cast<double>(all));
}

}  // namespace

PlacementSummary cores_to_probe(const Options& options) {
  if (options.cores.empty()) return {.not_probed = "there are no two cores that samples are kept on"};
  if (options.cores.size() < 2 || options.cores[0] == options.cores[1]) {
    return {.not_probed = "sender and receiver are kept on one core"};
  }
  return {.cores = options.cores};
}

std::string text_of(const PlacementSummary& summary) {
  if (summary.cores.empty()) return "placement of cores not probed: " + summary.not_probed;
  if (summary.found.empty()) return "placement of cores not known: they were never free to be probed";
  const std::size_t all = probes_of(summary.found);
  const Placement& counted = summary.found[0];
  std::string text =
      fmt::format("cores {}: {} ns for a cache line to and fro, {} GB/s through a small buffer ({} of {} probes)",
                  fmt::join(summary.cores, " and "), figure(counted.middle.round_trip_ns),
                  figure(counted.middle.copy_gb_s), share_of(counted, all), all);
  for (std::size_t i = 1; i < summary.found.size(); ++i) {
    const Placement& other = summary.found[i];
    text += fmt::format("{} {} ns, {} GB/s ({})", i == 1 ? "; also" : ",", figure(other.middle.round_trip_ns),
                        figure(other.middle.copy_gb_s), share_of(other, all));
  }
  if (summary.retaken > 0) text += fmt::format("; {} samples taken again for it", summary.retaken);
  if (summary.elsewhere > 0) text += fmt::format("; {} samples count that were taken elsewhere", summary.elsewhere);
  return text;
}

std::size_t PlacementWatch::before() { return is_fresh() ? last_ : after(); }

std::size_t PlacementWatch::after() {
  const std::optional<Probe> probe = look();
  last_ = probe ? probes_.size() : kNone;
  last_at_ = monotonic_ns();
  if (probe) probes_.push_back(*probe);
  return last_;
}

bool PlacementWatch::counts(const Around& around) { return in_majority(around.before) && in_majority(around.after); }

bool PlacementWatch::await_majority(std::uint64_t until_ns) {
  if (is_fresh() && in_majority(last_)) return true;
  while (true) {
    const std::optional<Probe> probe = look();
    if (!probe || is_of_largest(placements(), *probe)) return true;
    if (monotonic_ns() >= until_ns) return false;
    std::this_thread::sleep_for(pause_);
  }
}

void PlacementWatch::freeze() {
  placements();
  frozen_ = true;
}

std::vector<Placement> PlacementWatch::found() { return placements().found; }

bool PlacementWatch::in_majority(std::size_t probe) {
  if (probe == kNone) return true;
  const Placements& known = placements();
  return probe < known.of.size() ? known.of[probe] == 0 : is_of_largest(known, probes_[probe]);
}

const Placements& PlacementWatch::placements() {
  if (!frozen_ && placements_.of.size() != probes_.size()) placements_ = classify(probes_);
  return placements_;
}

bool PlacementWatch::is_fresh() const { return last_ != kNone && monotonic_ns() - last_at_ < kFreshNs; }

}  // namespace wherry::bench
