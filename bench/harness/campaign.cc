// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/campaign.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "bench/harness/sample_length.hpp"

namespace wherry::bench {
namespace {

/// How often a sample is taken again because others were busy, and how often because the cores were placed otherwise.
constexpr int kRetakes = 2;
/// After so much of a run's time the end of it waits no longer for the host to place the cores as in most of the run.
constexpr double kShareOfWaiting = 0.2;

bool takes(const System& system, const Sample& sample) {
  return system.can(sample) && (sample.idle == 0 || system.serves_idle());
}

/// Whether the processes of a sample run where the probes look: kept there, or because there is no other core.
bool keeps_to_two_cores(const System& system, const Sample& sample) {
  if (sample.senders == 1 && system.pinned()) return true;
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 2;
}

std::size_t steps(const Options& options, const std::vector<System*>& systems, const std::vector<Point>& points) {
  std::size_t able = 0;
  for (const Point& point : points) {
    able += static_cast<std::size_t>(
        std::count_if(systems.begin(), systems.end(), [&](const System* one) { return takes(*one, point.sample); }));
  }
  return able * (static_cast<std::size_t>(options.samples) + (options.smoke ? 0 : 1));
}

}  // namespace

std::string describe(const Sample& sample) {
  std::string text = size_text(sample.size);
  if (sample.question == Question::asleep) text += ", from sleep";
  text += sample.touched ? ", touched" : ", handover";
  if (sample.senders > 1) text += fmt::format(", {} senders", sample.senders);
  if (sample.idle > 0) text += fmt::format(", {} idle connections", sample.idle);
  return text;
}

Campaign::Campaign(const Options& options, std::vector<System*> systems, std::vector<Point> points, Prober prober,
                   LoadMeter meter)
    : options_(options),
      systems_(std::move(systems)),
      points_(std::move(points)),
      meter_(std::move(meter)),
      placements_(std::move(prober)),
      progress_(steps(options, systems_, points_)),
      random_(options.seed) {
  circumstances_.placement = cores_to_probe(options);
}

std::vector<Row> Campaign::run() {
  const std::uint64_t start = monotonic_ns();
  std::vector<Measured> all;
  for (const Point& point : points_) all.push_back(measure(point));
  const std::uint64_t now = monotonic_ns();
  settle_all(all, now + static_cast<std::uint64_t>(kShareOfWaiting * static_cast<double>(now - start)));
  progress_.clear();
  std::vector<Row> rows;
  for (const Measured& measured : all) {
    for (const Entry& entry : measured.entries) {
      if (entry.failed) continue;
      std::vector<Figures> samples;
      for (const Taken& one : entry.taken) samples.push_back(one.figures);
      append_rows(rows, measured.point->bench, *entry.system, entry.sample, samples);
    }
  }
  return rows;
}

Campaign::Measured Campaign::measure(const Point& point) {
  Measured measured{&point};
  for (System* system : systems_) {
    if (takes(*system, point.sample)) measured.entries.push_back({system, point.sample});
  }
  for (Entry& entry : measured.entries) calibrate(entry, point);
  std::vector<Entry*> turns;
  for (Entry& entry : measured.entries) turns.push_back(&entry);
  for (int i = 0; i < options_.samples; ++i) {
    std::shuffle(turns.begin(), turns.end(), random_);
    for (Entry* entry : turns) {
      if (entry->failed) continue;
      progress_.step(fmt::format("{} {}, {}: sample {} of {}", point.bench, describe(point.sample),
                                 entry->system->name(), i + 1, options_.samples));
      if (std::optional<Taken> taken = take(*entry, point)) entry->taken.push_back(std::move(*taken));
    }
  }
  settle(measured, 0);
  return measured;
}

void Campaign::settle(Measured& measured, std::uint64_t until_ns) {
  if (options_.smoke) return;
  std::vector<std::pair<Entry*, std::size_t>> turns;
  for (Entry& entry : measured.entries) {
    for (std::size_t i = 0; i < entry.taken.size(); ++i) turns.emplace_back(&entry, i);
  }
  std::shuffle(turns.begin(), turns.end(), random_);
  for (int retake = 0; retake < kRetakes; ++retake) {
    for (const auto& [entry, number] : turns) {
      Taken& old = entry->taken[number];
      if (entry->failed || old.moves == kRetakes || placements_.counts(old.around)) continue;
      if (!placements_.await_majority(until_ns)) return;
      progress_.extra_step(fmt::format("{} {}, {}: again, the cores were placed otherwise", measured.point->bench,
                                       describe(measured.point->sample), entry->system->name()));
      ++circumstances_.placement.retaken;
      if (std::optional<Taken> again = take(*entry, *measured.point)) {
        again->moves = old.moves + 1;
        old = std::move(*again);
      }
    }
  }
}

void Campaign::settle_all(std::vector<Measured>& all, std::uint64_t until_ns) {
  placements_.freeze();
  for (Measured& measured : all) settle(measured, until_ns);
  PlacementSummary& summary = circumstances_.placement;
  for (const Measured& measured : all) {
    for (const Entry& entry : measured.entries) {
      if (entry.failed) continue;
      summary.elsewhere += static_cast<std::size_t>(std::count_if(
          entry.taken.begin(), entry.taken.end(), [&](const Taken& one) { return !placements_.counts(one.around); }));
    }
  }
  summary.found = placements_.found();
}

void Campaign::calibrate(Entry& entry, const Point& point) {
  Options options = options_;
  // Where nothing moves, the payload is no measure of a sample's length: 1 GiB would be 8 messages of 128 MiB.
  if (entry.system->in_place() && !entry.sample.touched) options.bytes = UINT64_MAX;
  entry.sample.messages = first_messages(entry.sample, options);
  if (options_.smoke) return;
  progress_.step(fmt::format("{} {}, {}: warming up", point.bench, describe(point.sample), entry.system->name()));
  try {
    const Outcome outcome = entry.system->run(entry.sample);
    entry.sample.messages = messages_for(entry.sample, outcome, options);
  } catch (const std::exception& error) {
    fail(entry, point, error.what());
    progress_.skip(static_cast<std::size_t>(options_.samples));
  }
}

std::optional<Campaign::Taken> Campaign::take(Entry& entry, const Point& point) {
  try {
    return undisturbed(entry);
  } catch (const std::exception& error) {
    fail(entry, point, error.what());
    return std::nullopt;
  }
}

Campaign::Taken Campaign::undisturbed(Entry& entry) {
  const bool probed = keeps_to_two_cores(*entry.system, entry.sample);
  for (int retake = 0;; ++retake) {
    Taken taken;
    if (probed) taken.around.before = placements_.before();
    Outcome outcome;
    const ForeignLoad load = meter_([&] { outcome = entry.system->run(entry.sample); });
    if (probed) taken.around.after = placements_.after();
    if (load.disturbing() && retake < kRetakes && !options_.smoke) {
      ++circumstances_.retaken;
      continue;
    }
    circumstances_.worst.busy = std::max(circumstances_.worst.busy, load.busy);
    circumstances_.worst.steal = std::max(circumstances_.worst.steal, load.steal);
    taken.figures = figures_of(*entry.system, entry.sample, outcome);
    return taken;
  }
}

void Campaign::fail(Entry& entry, const Point& point, const char* reason) {
  entry.failed = true;
  circumstances_.failures.push_back(
      {entry.system->name(), fmt::format("{} {}", point.bench, describe(point.sample)), reason});
}

}  // namespace wherry::bench
