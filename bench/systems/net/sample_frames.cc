// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/sample_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace wherry::bench::net {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostMessages = 1'000'000'000;
constexpr std::uint64_t kMostRoundTrips = 1'000'000;
constexpr std::uint64_t kMostIdle = 100'000;
constexpr std::uint64_t kMostSeconds = 3600;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;

/// A number of the other host, which may have sent anything.
std::uint64_t number(const json& from, const char* name, std::uint64_t least, std::uint64_t most) {
  const auto found = from.find(name);
  if (found == from.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() < least ||
      found->get<std::uint64_t>() > most) {
    throw std::runtime_error(fmt::format("the other host sent no valid value of {}", name));
  }
  return found->get<std::uint64_t>();
}

std::uint64_t any_number(const json& from, const char* name) { return number(from, name, 0, UINT64_MAX); }

double real(const json& value) {
  if (!value.is_number()) throw std::runtime_error("the other host sent what is no number");
  return value.get<double>();
}

}  // namespace

std::size_t latencies_of(const Sample& sample) { return sample.question == Question::stream ? 0 : sample.messages; }

json to_json(const Sample& sample) {
  return {{"question", static_cast<unsigned>(sample.question)},
          {"size", sample.size},
          {"messages", sample.messages},
          {"idle", sample.idle},
          {"touched", sample.touched},
          {"timeout_seconds", static_cast<std::uint64_t>(sample.timeout_seconds)}};
}

Sample sample_of(const json& json) {
  Sample sample;
  sample.question = static_cast<Question>(number(json, "question", 0, static_cast<unsigned>(Question::asleep)));
  sample.size = number(json, "size", 1, kMostBytes);
  sample.messages = number(json, "messages", 1, sample.question == Question::stream ? kMostMessages : kMostRoundTrips);
  sample.idle = static_cast<std::uint32_t>(number(json, "idle", 0, kMostIdle));
  sample.touched = json.value("touched", false);
  sample.timeout_seconds = static_cast<double>(number(json, "timeout_seconds", 1, kMostSeconds));
  return sample;
}

json result_of(SampleMemory& shared, std::uint32_t rank) {
  const Report& report = shared.report(rank);
  const std::span<const double> latencies = shared.latencies(rank);
  return {{"lap", report.lap},
          {"lap_ns", static_cast<std::uint64_t>(report.lap_ns)},
          {"part_ns", static_cast<std::uint64_t>(report.part_ns)},
          {"cpu_seconds", report.cpu_seconds},
          {"context_switches", report.context_switches},
          {"sum", report.sum},
          {"latencies_ns", std::vector<double>(latencies.begin(), latencies.end())}};
}

void store_result(const json& json, SampleMemory& shared, std::uint32_t rank) {
  Report& report = shared.report(rank);
  report.lap = any_number(json, "lap");
  report.lap_ns = static_cast<std::int64_t>(any_number(json, "lap_ns"));
  report.part_ns = static_cast<std::int64_t>(any_number(json, "part_ns"));
  report.cpu_seconds = real(json.value("cpu_seconds", nlohmann::json()));
  report.context_switches = any_number(json, "context_switches");
  report.sum = any_number(json, "sum");
  const nlohmann::json latencies = json.value("latencies_ns", nlohmann::json::array());
  if (latencies.size() != shared.latencies(rank).size()) {
    throw std::runtime_error("the other host sent another number of latencies");
  }
  std::transform(latencies.begin(), latencies.end(), shared.latencies(rank).begin(), real);
  report.complete = true;
}

}  // namespace wherry::bench::net
