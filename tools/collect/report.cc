// SPDX-License-Identifier: Apache-2.0
#include "collect/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
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
          {"pid", shipper.pid},
          {"node", shipper.node ? json(*shipper.node) : json()},
          {"status", name_of(shipper.end)},
          {"files", shipper.stored.files},
          {"directories", shipper.stored.directories},
          {"symlinks", shipper.stored.symlinks},
          {"bytes", shipper.stored.bytes},
          {"incomplete_file", shipper.incomplete_file.empty() ? json() : json(shipper.incomplete_file)},
          {"error", shipper.error.empty() ? json() : json(shipper.error)},
          {"refused", shipper.failure_count},
          {"unreadable", shipper.shipper_failures},
          {"failures", to_json(shipper.failures)}};
}

}  // namespace

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

std::string ShipperReport::who() const {
  std::string details = pid != 0 ? fmt::format("pid {}", pid) : address;
  if (node) details += fmt::format(", node {}", *node);
  return label.empty() ? fmt::format("shipper ({})", details) : fmt::format("'{}' ({})", printable(label), details);
}

void CollectReport::add(ShipperReport shipper) {
  stored += shipper.stored;
  const bool whole = shipper.end == SessionEnd::complete;
  const std::uint64_t before = whole ? shippers_complete++ : shippers_incomplete++;
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

bool CollectReport::complete() const { return !interrupted && failures.empty() && shippers_incomplete == 0; }

json CollectReport::to_json() const {
  json list = json::array();
  for (const ShipperReport& shipper : shippers) list.push_back(tools::to_json(shipper));
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
          {"failures", tools::to_json(failures)},
          {"shippers", list},
          {"shippers_left_out", shippers_left_out}};
}

std::string CollectReport::to_text() const {
  std::string text =
      fmt::format("{}, {}, {} from {}: {} in {}, {}{}\n", counted(stored.files, "file"),
                  counted(stored.directories, "directory"), counted(stored.symlinks, "symlink"),
                  counted(shippers_complete + shippers_incomplete, "shipper"), human_bytes(stored.bytes),
                  human_time(seconds), human_rate(stored.bytes, seconds), durable ? "" : ", not flushed to disk");
  for (const ShipperReport& shipper : shippers) {
    if (shipper.end == SessionEnd::complete) continue;
    text += fmt::format("{} {}", shipper.who(), name_of(shipper.end));
    if (!shipper.incomplete_file.empty())
      text += fmt::format(" in the middle of {}", printable(shipper.incomplete_file));
    if (!shipper.error.empty()) text += ": " + printable(shipper.error);
    if (shipper.failure_count > 0) text += fmt::format("; {} refused", counted(shipper.failure_count, "path"));
    if (shipper.shipper_failures > 0)
      text += fmt::format("; it could not read {}", counted(shipper.shipper_failures, "path"));
    text += '\n';
  }
  if (shippers_incomplete > kKeptIncomplete) {
    text += fmt::format("and {} more were not complete\n", counted(shippers_incomplete - kKeptIncomplete, "shipper"));
  }
  return text;
}

}  // namespace wherry::tools
