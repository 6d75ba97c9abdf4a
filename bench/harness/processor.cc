// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/processor.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/harness/report.hpp"

namespace wherry::bench {
namespace {

/// The vendors' words, and codes of Arm's implementers.
const std::map<std::string, std::string, std::less<>> kMakes{
    {"AuthenticAMD", "AMD"}, {"GenuineIntel", "Intel"}, {"HygonGenuine", "Hygon"}, {"0x41", "Arm"},
    {"0x48", "HiSilicon"},   {"0x61", "Apple"},         {"0xc0", "Ampere"},
};

/// The first of these entries that is there.
std::string entry(const std::map<std::string, std::string>& entries, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto found = entries.find(name); found != entries.end()) return found->second;
  }
  return {};
}

/// "L1d", "L2", "L3"
std::string name_of(const Cache& cache) { return fmt::format("L{}{}", cache.level, cache.unified ? "" : "d"); }

}  // namespace

Processor processor_in(std::istream& cpuinfo) {
  std::map<std::string, std::string> entries;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    entries.emplace(name, value == std::string::npos ? "" : line.substr(value));
  }
  Processor processor{.make = entry(entries, {"vendor_id", "CPU implementer"}),
                      .family = entry(entries, {"cpu family", "CPU architecture"}),
                      .model = entry(entries, {"model", "CPU part"})};
  if (const auto known = kMakes.find(processor.make); known != kMakes.end()) processor.make = known->second;
  return processor;
}

Processor this_processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  Processor processor = processor_in(cpuinfo);
  processor.caches = caches_in(fmt::format("/sys/devices/system/cpu/cpu{}/cache", first_core()));
  return processor;
}

std::string text_of(const Processor& processor) {
  std::string text = processor.make.empty() ? "unknown make" : processor.make;
  if (!processor.family.empty()) text += " family " + processor.family;
  if (!processor.model.empty()) text += " model " + processor.model;
  std::string_view before = ": ";
  for (const Cache& cache : processor.caches) {
    text += fmt::format("{}{} {}", before, name_of(cache), size_text(cache.bytes));
    if (cache.cores.find_first_of("-,") != std::string::npos) text += " of cores " + cache.cores;
    before = ", ";
  }
  return text;
}

nlohmann::json to_json(const Processor& processor) {
  nlohmann::json caches = nlohmann::json::array();
  for (const Cache& cache : processor.caches) {
    caches.push_back({{"name", name_of(cache)}, {"bytes", cache.bytes}, {"cores", cache.cores}});
  }
  return {{"make", processor.make},
          {"family", processor.family},
          {"model", processor.model},
          {"caches", std::move(caches)}};
}

}  // namespace wherry::bench
