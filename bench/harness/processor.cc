// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/processor.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/harness/report.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

/// The vendors' words, and codes of Arm's implementers.
const std::map<std::string, std::string, std::less<>> kMakes{
    {"AuthenticAMD", "AMD"}, {"GenuineIntel", "Intel"}, {"HygonGenuine", "Hygon"}, {"0x41", "Arm"},
    {"0x48", "HiSilicon"},   {"0x61", "Apple"},         {"0xc0", "Ampere"},
};

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

/// "48K", "32768K", "1M" in bytes.
std::uint64_t bytes_in(const std::string& text) {
  std::uint64_t number = 0;
  std::size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  const char unit = at < text.size() ? text[at] : ' ';
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

/// The first of these entries that is there.
std::string entry(const std::map<std::string, std::string>& entries, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto found = entries.find(name); found != entries.end()) return found->second;
  }
  return {};
}

int first_core() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int core = 0;
  while (core < CPU_SETSIZE - 1 && !CPU_ISSET(static_cast<unsigned>(core), &allowed)) ++core;
  return core;
}

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

std::vector<Cache> caches_in(const fs::path& folder) {
  std::vector<Cache> caches;
  std::error_code none;
  for (const fs::directory_entry& one : fs::directory_iterator(folder, none)) {
    const std::string type = first_line(one.path() / "type");
    const std::string level = first_line(one.path() / "level");
    if (level.empty() || type == "Instruction") continue;
    caches.push_back({.name = fmt::format("L{}{}", level, type == "Data" ? "d" : ""),
                      .bytes = bytes_in(first_line(one.path() / "size")),
                      .cores = first_line(one.path() / "shared_cpu_list")});
  }
  std::sort(caches.begin(), caches.end(), [](const Cache& one, const Cache& other) { return one.name < other.name; });
  return caches;
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
    text += fmt::format("{}{} {}", before, cache.name, size_text(cache.bytes));
    if (cache.cores.find_first_of("-,") != std::string::npos) text += " of cores " + cache.cores;
    before = ", ";
  }
  return text;
}

nlohmann::json to_json(const Processor& processor) {
  nlohmann::json caches = nlohmann::json::array();
  for (const Cache& cache : processor.caches) {
    caches.push_back({{"name", cache.name}, {"bytes", cache.bytes}, {"cores", cache.cores}});
  }
  return {{"make", processor.make},
          {"family", processor.family},
          {"model", processor.model},
          {"caches", std::move(caches)}};
}

}  // namespace wherry::bench
