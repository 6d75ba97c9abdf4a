// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "bench/harness/rows.hpp"
#include "bench/harness/sample_length.hpp"

namespace wherry::bench {
namespace {

/// How often a sample is taken again because others were busy.
constexpr int kRetakes = 2;

bool takes(const System& system, const Sample& sample) {
  return system.can(sample) && (sample.idle == 0 || system.serves_idle());
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

Campaign::Campaign(const Options& options, std::vector<System*> systems, std::vector<Point> points, LoadMeter meter)
    : options_(options),
      systems_(std::move(systems)),
      points_(std::move(points)),
      meter_(std::move(meter)),
      progress_(steps(options, systems_, points_)),
      random_(options.seed) {}

std::vector<Row> Campaign::run() {
  std::vector<Row> rows;
  for (const Point& point : points_) measure(point, rows);
  progress_.clear();
  return rows;
}

void Campaign::measure(const Point& point, std::vector<Row>& rows) {
  std::vector<Entry> entries;
  for (System* system : systems_) {
    if (takes(*system, point.sample)) entries.push_back({system, point.sample});
  }
  for (Entry& entry : entries) calibrate(entry, point);
  std::vector<Entry*> turns;
  for (Entry& entry : entries) turns.push_back(&entry);
  for (int i = 0; i < options_.samples; ++i) {
    std::shuffle(turns.begin(), turns.end(), random_);
    for (Entry* entry : turns) take(*entry, point, fmt::format("sample {} of {}", i + 1, options_.samples));
  }
  for (const Entry& entry : entries) {
    if (!entry.failed) append_rows(rows, point.bench, *entry.system, entry.sample, entry.outcomes);
  }
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

void Campaign::take(Entry& entry, const Point& point, const std::string& what) {
  if (entry.failed) return;
  progress_.step(fmt::format("{} {}, {}: {}", point.bench, describe(point.sample), entry.system->name(), what));
  try {
    for (int retake = 0;; ++retake) {
      Outcome outcome;
      const ForeignLoad load = meter_([&] { outcome = entry.system->run(entry.sample); });
      if (load.disturbing() && retake < kRetakes && !options_.smoke) {
        ++circumstances_.retaken;
        continue;
      }
      circumstances_.worst.busy = std::max(circumstances_.worst.busy, load.busy);
      circumstances_.worst.steal = std::max(circumstances_.worst.steal, load.steal);
      entry.outcomes.push_back(std::move(outcome));
      return;
    }
  } catch (const std::exception& error) {
    fail(entry, point, error.what());
  }
}

void Campaign::fail(Entry& entry, const Point& point, const char* reason) {
  entry.failed = true;
  circumstances_.failures.push_back(
      {entry.system->name(), fmt::format("{} {}", point.bench, describe(point.sample)), reason});
}

}  // namespace wherry::bench
