// SPDX-License-Identifier: Apache-2.0
#include "collect/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/text.hpp"

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

Amounts CollectReport::stored() const {
  Amounts sum;
  for (const ShipperReport& shipper : shippers) sum += shipper.stored;
  return sum;
}

bool CollectReport::complete() const {
  return !interrupted && failures.empty() && std::all_of(shippers.begin(), shippers.end(), [](const auto& shipper) {
    return shipper.end == SessionEnd::complete;
  });
}

json CollectReport::to_json() const {
  const Amounts sum = stored();
  json list = json::array();
  for (const ShipperReport& shipper : shippers) list.push_back(tools::to_json(shipper));
  return {{"command", "collect"},
          {"status", complete() ? "complete" : "incomplete"},
          {"listen", listen},
          {"into", into},
          {"files", sum.files},
          {"directories", sum.directories},
          {"symlinks", sum.symlinks},
          {"bytes", sum.bytes},
          {"seconds", seconds},
          {"gigabytes_per_second", rate(sum.bytes, seconds)},
          {"interrupted", interrupted},
          {"failures", tools::to_json(failures)},
          {"shippers", list}};
}

std::string CollectReport::to_text() const {
  const Amounts sum = stored();
  std::string text = fmt::format("{}, {}, {} from {}: {} in {}, {}\n", counted(sum.files, "file"),
                                 counted(sum.directories, "directory"), counted(sum.symlinks, "symlink"),
                                 counted(shippers.size(), "shipper"), human_bytes(sum.bytes), human_time(seconds),
                                 human_rate(sum.bytes, seconds));
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
  return text;
}

}  // namespace wherry::tools
