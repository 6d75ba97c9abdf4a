// SPDX-License-Identifier: Apache-2.0
#include "top/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/readable.hpp"
#include "common/json_text.hpp"
#include "common/table.hpp"

namespace wherry::tools {
namespace {

using layout::EndpointKind;

std::string per_second(double bytes) { return human_bytes(bytes) + "/s"; }

// Small rates get two digits, so that a few events per hour are not shown as 0.
std::string times(double per_second) {
  return per_second > 0 && per_second < 9.95 ? fmt::format("{:.2g}", per_second) : fmt::format("{:.0f}", per_second);
}

std::string fill(std::uint64_t bytes, std::uint64_t capacity) {
  return capacity == 0 ? "-" : fmt::format("{}%", bytes * 100 / capacity);
}

// NODE:PORT, without the scheme, which is the same for all.
std::string short_address(const Address& address) {
  const std::string port = address.port ? std::to_string(*address.port) : "*";
  return fmt::format("{}:{}", address.node.value_or(0), port);
}

const char* state(const EndpointReading& endpoint) {
  if (endpoint.kind == EndpointKind::listener) return "listens";
  if (endpoint.asleep_sending && endpoint.asleep_receiving) return "sleeps";
  if (endpoint.asleep_sending) return "waits for space";
  return endpoint.asleep_receiving ? "waits for data" : "";
}

std::string peer_text(const EndpointReading& endpoint) {
  if (endpoint.kind == EndpointKind::listener) return "";
  // An IPv6 address is in brackets, as in URLs.
  const bool is_ipv6 = endpoint.peer_host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + endpoint.peer_host + "]:" : endpoint.peer_host + ":";
  return (endpoint.peer_host.empty() ? "" : host) + short_address(endpoint.peer) +
         (endpoint.peer_pid == 0 ? "" : fmt::format(" ({})", endpoint.peer_pid));
}

std::vector<std::string> cells(const Activity& activity) {
  const EndpointReading& endpoint = *activity.endpoint;
  const Rates& rates = activity.rates;
  std::vector<std::string> row{std::to_string(activity.process->pid), activity.process->program, activity.process->job,
                               short_address(endpoint.local),         peer_text(endpoint),       endpoint.fabric};
  if (endpoint.kind == EndpointKind::listener) {
    row.insert(row.end(), {"", "", "", "", times(rates.receives), "", "", "", state(endpoint)});
    return row;
  }
  row.insert(row.end(), {per_second(rates.bytes_sent), times(rates.sends),
                         fill(endpoint.send_fill, endpoint.send_capacity), per_second(rates.bytes_received),
                         times(rates.receives), fill(endpoint.receive_fill, endpoint.receive_capacity),
                         times(rates.sleeps), times(rates.wakes), state(endpoint)});
  return row;
}

std::string summary(const Reading& now, const std::vector<Activity>& all) {
  double sent = 0;
  double received = 0;
  std::uint64_t not_shown = 0;
  for (const Activity& activity : all) {
    sent += activity.rates.bytes_sent;
    received += activity.rates.bytes_received;
  }
  for (const ProcessReading& process : now.processes) not_shown += process.endpoints_not_shown;
  std::string text = fmt::format("{} process{}, {}: sends {}, receives {}", now.processes.size(),
                                 now.processes.size() == 1 ? "" : "es", counted(all.size(), "endpoint"),
                                 per_second(sent), per_second(received));
  if (not_shown > 0) text += fmt::format("; {} more not shown", not_shown);
  return text;
}

nlohmann::json endpoint_json(const Activity& activity) {
  const EndpointReading& endpoint = *activity.endpoint;
  const Rates& rates = activity.rates;
  return {
      {"kind", endpoint.kind == EndpointKind::listener ? "listener" : "stream"},
      {"local", endpoint.local.to_string()},
      {"peer", endpoint.kind == EndpointKind::listener ? nlohmann::json() : nlohmann::json(endpoint.peer.to_string())},
      {"peer_pid", endpoint.peer_pid},
      {"peer_host", endpoint.peer_host},
      {"fabric", endpoint.fabric},
      {"state", state(endpoint)},
      {"opened_ns", endpoint.opened_ns},
      {"send_capacity", endpoint.send_capacity},
      {"receive_capacity", endpoint.receive_capacity},
      {"send_fill", endpoint.send_fill},
      {"receive_fill", endpoint.receive_fill},
      {"bytes_sent", endpoint.bytes_sent},
      {"bytes_received", endpoint.bytes_received},
      {"sends", endpoint.sends},
      {"receives", endpoint.receives},
      {"send_sleeps", endpoint.send_sleeps},
      {"receive_sleeps", endpoint.receive_sleeps},
      {"data_wakes", endpoint.data_wakes},
      {"space_wakes", endpoint.space_wakes},
      {"rates",
       {{"bytes_sent", rates.bytes_sent},
        {"sends", rates.sends},
        {"bytes_received", rates.bytes_received},
        {"receives", rates.receives},
        {"sleeps", rates.sleeps},
        {"wakes", rates.wakes}}}};
}

const char* kind_text(const TransfersReading& transfers) {
  switch (transfers.traits.kind) {
    case layout::TransferKind::hit:
      return "reads, in memory";
    case layout::TransferKind::miss:
      return "reads, missing";
    case layout::TransferKind::write:
      break;
  }
  return "writes";
}

const char* chosen_way(const TransfersReading& transfers) {
  return layout::go_to_host(transfers.traits, transfers.host, transfers.kernel) ? "host" : "mount";
}

std::string microseconds(std::uint64_t nanoseconds) {
  return nanoseconds == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(nanoseconds) / 1000);
}

std::vector<std::string> cells(const ProcessReading& process, const TransfersReading& one) {
  return {std::to_string(process.pid),
          process.program,
          kind_text(one),
          one.traits.in_order ? "in order" : "elsewhere",
          one.traits.crowded ? "busy" : "free",
          fmt::format("{}K", one.traits.bytes >> 10),
          std::to_string(one.host.calls),
          human_bytes(one.host.bytes),
          microseconds(one.host.estimate_ns),
          std::to_string(one.kernel.calls),
          human_bytes(one.kernel.bytes),
          microseconds(one.kernel.estimate_ns),
          std::to_string(one.host.explored + one.kernel.explored),
          chosen_way(one)};
}

nlohmann::json way_json(const TransfersReading::Way& way) {
  return {{"calls", way.calls}, {"bytes", way.bytes}, {"explored", way.explored}, {"estimate_ns", way.estimate_ns}};
}

nlohmann::json transfers_json(const ProcessReading& process) {
  auto all = nlohmann::json::array();
  for (const TransfersReading& one : process.transfers) {
    all.push_back({{"kind", kind_text(one)},
                   {"bytes_from", one.traits.bytes},
                   {"in_order", one.traits.in_order},
                   {"cores_busy", one.traits.crowded},
                   {"host", way_json(one.host)},
                   {"mount", way_json(one.kernel)},
                   {"chosen", chosen_way(one)}});
  }
  return all;
}

nlohmann::json process_json(const ProcessReading& process) {
  return {{"pid", process.pid},
          {"program", process.program},
          {"job", process.job},
          {"node", process.node},
          {"started_ns", process.started_ns},
          {"endpoints_not_shown", process.endpoints_not_shown},
          {"endpoints", nlohmann::json::array()},
          {"transfers", transfers_json(process)}};
}

}  // namespace

std::string top_text(const Reading& before, const Reading& now, std::size_t lines, std::size_t columns) {
  using enum Table::Align;
  const auto all = activities(before, now);
  std::string text = summary(now, all).substr(0, columns == 0 ? std::string::npos : columns) + "\n";
  if (all.empty()) return text;
  Table table({{"PID", right},
               {"PROGRAM"},
               {"JOB"},
               {"LOCAL"},
               {"PEER (PID)"},
               {"FABRIC"},
               {"OUT", right},
               {"SENDS/s", right},
               {"FILL", right},
               {"IN", right},
               {"RECEIVES/s", right},
               {"FILL", right},
               {"SLEEPS/s", right},
               {"WAKES/s", right},
               {"STATE"}});
  // Subtracts the summary, an empty line, the titles, and the line that reports omitted rows.
  const std::size_t room = lines == 0 || all.size() + 3 <= lines ? all.size() : std::max<std::size_t>(lines, 5) - 4;
  for (std::size_t i = 0; i < room; ++i) table.row(cells(all[i]));
  text += "\n" + table.text(columns);
  if (room < all.size()) text += fmt::format("and {} more\n", all.size() - room);
  return text;
}

std::string top_files_text(const Reading& now, std::size_t lines, std::size_t columns) {
  using enum Table::Align;
  Table table({{"PID", right},
               {"PROGRAM"},
               {"TRANSFERS"},
               {"ORDER"},
               {"CORES"},
               {"FROM", right},
               {"HOST", right},
               {"BYTES", right},
               {"US", right},
               {"MOUNT", right},
               {"BYTES", right},
               {"US", right},
               {"TRIED", right},
               {"CHOSEN"}});
  std::vector<std::vector<std::string>> rows;
  for (const ProcessReading& process : now.processes) {
    for (const TransfersReading& one : process.transfers) rows.push_back(cells(process, one));
  }
  if (rows.empty()) return "no program chooses between a mount and its host\n";
  // Subtracts the titles, and the line that reports omitted rows.
  const std::size_t room = lines == 0 || rows.size() + 1 <= lines ? rows.size() : std::max<std::size_t>(lines, 3) - 2;
  for (std::size_t i = 0; i < room; ++i) table.row(rows[i]);
  std::string text = table.text(columns);
  if (room < rows.size()) text += fmt::format("and {} more\n", rows.size() - room);
  return text;
}

std::string top_json(const Reading& before, const Reading& now) {
  std::map<const ProcessReading*, nlohmann::json> by_process;
  for (const ProcessReading& process : now.processes) by_process[&process] = process_json(process);
  for (const Activity& activity : activities(before, now)) {
    by_process[activity.process]["endpoints"].push_back(endpoint_json(activity));
  }
  nlohmann::json object{{"at_ns", now.at_ns}, {"processes", nlohmann::json::array()}};
  for (auto& [process, json] : by_process) object["processes"].push_back(std::move(json));
  return json_text(object, -1);
}

}  // namespace wherry::tools
