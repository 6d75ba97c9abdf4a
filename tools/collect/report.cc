// SPDX-License-Identifier: Apache-2.0
#include "collect/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/printable.hpp"
#include "base/readable.hpp"

namespace wherry::tools {
namespace {

using nlohmann::json;

double rate(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

json to_json(const std::vector<Failure>& failures) {
  json list = json::array();
  for (const Failure& failure : failures) list.push_back({{"path", failure.path}, {"error", failure.error}});
  return list;
}

json to_json(const ShipperReport& shipper) {
  return {{"label", shipper.label},
          {"address", shipper.address},
          {"pid", shipper.pid != 0 ? shipper.pid : shipper.stated_pid},
          {"pid_vouched", shipper.pid != 0},
          {"node", shipper.node ? json(*shipper.node) : json()},
          {"status", name_of(shipper.end)},
          {"files", shipper.stored.files},
          {"directories", shipper.stored.directories},
          {"symlinks", shipper.stored.symlinks},
          {"bytes", shipper.stored.bytes},
          {"incomplete_file", shipper.incomplete_file.empty() ? json() : json(shipper.incomplete_file)},
          {"error", shipper.error.empty() ? json() : json(shipper.error)},
          {"refused", shipper.paths().refused},
          {"failed", shipper.paths().failed},
          {"unreadable", shipper.shipper_failures},
          {"failures", to_json(shipper.failures)}};
}

json to_json(const PathCounts& paths) {
  return {{"all", paths.all()}, {"stored", paths.stored}, {"refused", paths.refused}, {"failed", paths.failed}};
}

/// A path or a reason, shortened to one line. The shipper chooses its length.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 200;
  return printable(text.size() <= kMost ? text : text.substr(0, kMost) + "...");
}

std::string text_of_failures(const ShipperReport& shipper) {
  std::string text;
  const std::size_t shown = std::min(shipper.failures.size(), ShipperReport::kShownFailures);
  for (std::size_t i = 0; i < shown; ++i) {
    const Failure& failure = shipper.failures[i];
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", shortened(failure.path), shortened(failure.error));
  }
  if (shipper.failure_count > shown) text += fmt::format(" and {} more", shipper.failure_count - shown);
  return text;
}

}  // namespace

PathCounts& PathCounts::operator+=(const PathCounts& other) {
  stored += other.stored;
  refused += other.refused;
  failed += other.failed;
  return *this;
}

Amounts& Amounts::operator+=(const Amounts& other) {
  files += other.files;
  directories += other.directories;
  symlinks += other.symlinks;
  bytes += other.bytes;
  return *this;
}

const char* name_of(SessionEnd end) {
  switch (end) {
    case SessionEnd::complete:
      return "complete";
    case SessionEnd::refused:
      return "refused";
    case SessionEnd::died:
      return "died";
    case SessionEnd::broken:
      return "broken";
    case SessionEnd::interrupted:
      return "interrupted";
  }
  return "unknown";
}

void ShipperReport::add_failure(Failure failure) {
  ++failure_count;
  if (failures.size() < kKeptFailures) failures.push_back(std::move(failure));
}

std::string ShipperReport::name() const {
  const std::int64_t known = pid != 0 ? pid : stated_pid;
  std::string details = known != 0 ? fmt::format("pid {}", known) : address;
  if (node) details += fmt::format(", node {}", *node);
  return label.empty() ? fmt::format("shipper ({})", details) : fmt::format("'{}' ({})", printable(label), details);
}

PathCounts ShipperReport::paths() const {
  PathCounts paths{.stored = stored.paths(), .refused = refused_paths, .failed = shipper_failures};
  const std::uint64_t settled = paths.stored + paths.refused;
  // The number of paths that a shipper could not read is known only from its goodbye. Without one, all paths that it
  // began and that are neither stored nor refused are lost.
  if (!said_goodbye) paths.failed = begun_paths - std::min(begun_paths, settled);
  return paths;
}

std::string ShipperReport::to_text() const {
  std::string text = fmt::format("{} {}", name(), name_of(end));
  if (!incomplete_file.empty()) text += " in the middle of " + shortened(incomplete_file);
  if (!error.empty()) text += ": " + printable(error);
  text += fmt::format("; stored {}, {}", counted(stored.files, "file"), human_bytes(stored.bytes));
  const PathCounts counts = paths();
  if (failure_count > 0) {
    const bool all_refused = failure_count == refused_paths;
    text += fmt::format("; {}: {}",
                        all_refused ? counted(refused_paths, "path") + " refused" : counted(failure_count, "problem"),
                        text_of_failures(*this));
  }
  if (counts.failed > 0) {
    text += fmt::format("; {} {}", said_goodbye ? "it could not read" : "lost", counted(counts.failed, "path"));
  }
  return text;
}

void CollectReport::add(ShipperReport shipper) {
  stored += shipper.stored;
  paths += shipper.paths();
  const bool whole = shipper.end == SessionEnd::complete;
  const std::uint64_t before = whole ? ended_in(SessionEnd::complete) : sessions() - ended_in(SessionEnd::complete);
  ++ended[static_cast<std::size_t>(shipper.end)];
  if (before >= (whole ? kKeptComplete : kKeptIncomplete)) {
    ++shippers_left_out;
    return;
  }
  const std::uint64_t room = kKeptFailures - kept_failures_;
  if (shipper.failures.size() > room) shipper.failures.resize(room);
  shipper.failures.shrink_to_fit();
  kept_failures_ += shipper.failures.size();
  shippers.push_back(std::move(shipper));
}

std::uint64_t CollectReport::sessions() const { return std::accumulate(ended.begin(), ended.end(), std::uint64_t{0}); }

bool CollectReport::complete() const {
  return !interrupted && failures.empty() && ended_in(SessionEnd::complete) == sessions();
}

json CollectReport::to_json() const {
  json list = json::array();
  for (const ShipperReport& shipper : shippers) list.push_back(tools::to_json(shipper));
  json ends{{"all", sessions()}};
  for (const SessionEnd end : kSessionEnds) ends[name_of(end)] = ended_in(end);
  return {{"command", "collect"},
          {"status", complete() ? "complete" : "incomplete"},
          {"listen", listen},
          {"into", into},
          {"durable", durable},
          {"files", stored.files},
          {"directories", stored.directories},
          {"symlinks", stored.symlinks},
          {"bytes", stored.bytes},
          {"seconds", seconds},
          {"gigabytes_per_second", rate(stored.bytes, seconds)},
          {"interrupted", interrupted},
          {"sessions", ends},
          {"paths", tools::to_json(paths)},
          {"failures", tools::to_json(failures)},
          {"shippers", list},
          {"shippers_left_out", shippers_left_out}};
}

std::string CollectReport::to_text() const {
  std::string text = fmt::format("{}, {}, {} from {}: {} in {}, {}{}\n", counted(stored.files, "file"),
                                 counted(stored.directories, "directory"), counted(stored.symlinks, "symlink"),
                                 counted(sessions(), "shipper"), human_bytes(stored.bytes), human_time(seconds),
                                 human_rate(stored.bytes, seconds), durable ? "" : ", not flushed to disk");
  const std::uint64_t incomplete = sessions() - ended_in(SessionEnd::complete);
  if (incomplete == 0) return text;
  text += counted(sessions(), "shipper") + ":";
  for (const SessionEnd end : kSessionEnds) {
    if (ended_in(end) > 0) text += fmt::format(" {} {},", ended_in(end), name_of(end));
  }
  text.back() = '\n';
  text += fmt::format("{}: {} stored, {} refused, {} failed\n", counted(paths.all(), "path"), paths.stored,
                      paths.refused, paths.failed);
  for (const ShipperReport& shipper : shippers) {
    if (shipper.end != SessionEnd::complete) text += shipper.to_text() + "\n";
  }
  if (incomplete > kKeptIncomplete) {
    text += fmt::format("and {} more were not complete\n", counted(incomplete - kKeptIncomplete, "shipper"));
  }
  return text;
}

}  // namespace wherry::tools
