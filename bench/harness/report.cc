// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/harness/processor.hpp"

namespace wherry::bench {
namespace {

double median_of(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// How the kernel chooses the cores' frequency; empty where it does not, as in most virtual machines.
std::string governor() {
  std::string word;
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> word;
  return word;
}

nlohmann::json environment() {
  utsname system{};
  uname(&system);
  return {{"governor", governor()},
          {"cpu", cpu_model()},
          {"processor", to_json(this_processor())},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_bytes",
           static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))},
          {"kernel", system.release},
          {"architecture", system.machine},
          {"compiler", __VERSION__}};
}

nlohmann::json to_json(const Row& row) {
  return {{"bench", row.bench},     {"system", row.system},
          {"version", row.version}, {"mode", row.mode},
          {"senders", row.senders}, {"size", row.size},
          {"metric", row.metric},   {"median", row.median},
          {"mad", row.mad},         {"n", row.n}};
}

}  // namespace

void summarise(Row& row, std::vector<double> samples) {
  row.n = samples.size();
  row.median = median_of(samples);
  for (double& sample : samples) sample = std::abs(sample - row.median);
  row.mad = median_of(samples);
}

void write_json(const std::string& path, const std::vector<Row>& rows) {
  write_json(path, rows, nlohmann::json::object());
}

void write_json(const std::string& path, const std::vector<Row>& rows, const nlohmann::json& run) {
  nlohmann::json report{{"environment", environment()}, {"rows", nlohmann::json::array()}};
  report["environment"].update(run);
  for (const Row& row : rows) report["rows"].push_back(to_json(row));
  const std::string text = report.dump(1) + "\n";
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::system_error(errno, std::system_category(), "write " + path);
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, "GiB"}, std::pair{20, "MiB"}, std::pair{10, "KiB"}}) {
    if (bytes != 0 && bytes % (std::uint64_t{1} << shift) == 0) return fmt::format("{} {}", bytes >> shift, unit);
  }
  return fmt::format("{} B", bytes);
}

}  // namespace wherry::bench
