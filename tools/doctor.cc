// SPDX-License-Identifier: Apache-2.0
//
// wherry doctor: whether this machine, this user and this environment let Wherry work, and what to change.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.hpp"
#include "common/json_text.hpp"
#include "doctor/check.hpp"

namespace wherry::tools {
namespace {

using doctor::Finding;
using doctor::Verdict;

struct Check {
  const char* name;
  Finding (*look)();
};

// From the ground up: the first that fails explains those below it.
constexpr std::array kChecks{
    Check{"kernel", doctor::check_kernel},
    Check{"cores", doctor::check_cores},
    Check{"memory", doctor::check_memory},
    Check{"descriptors", doctor::check_descriptors},
    Check{"file sizes", doctor::check_file_sizes},
    Check{"locked memory", doctor::check_locked_memory},
    Check{"memory files", doctor::check_memory_files},
    Check{"sockets", doctor::check_sockets},
    Check{"waiting", doctor::check_waiting},
    Check{"copying between processes", doctor::check_peer_copy},
    Check{"lending descriptors", doctor::check_lending},
    Check{"registering memory", doctor::check_page_faults},
    Check{"io_uring", doctor::check_io_uring},
    Check{"membarrier", doctor::check_membarrier},
    Check{"huge pages", doctor::check_huge_pages},
    Check{"settings", doctor::check_settings},
    Check{"stream", doctor::check_stream},
};

struct Report {
  std::vector<std::pair<const char*, Finding>> findings;
  int warnings = 0;
  int failures = 0;
};

Report examine() {
  Report report;
  for (const Check& check : kChecks) {
    report.findings.emplace_back(check.name, check.look());
    report.warnings += report.findings.back().second.verdict == Verdict::warn ? 1 : 0;
    report.failures += report.findings.back().second.verdict == Verdict::fail ? 1 : 0;
  }
  return report;
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "OK";
    case Verdict::warn:
      return "warn";
    case Verdict::fail:
      return "FAIL";
  }
  return "";
}

void print_text(const Report& report) {
  for (const auto& [name, finding] : report.findings) {
    fmt::print("{:<4}  {:<25}  {}\n", word(finding.verdict), name, finding.found);
    if (!finding.advice.empty()) fmt::print("{:<4}  {:<25}  -> {}\n", "", "", finding.advice);
  }
  if (report.failures > 0) {
    fmt::print("\nWherry does not work here: {} of {} checks failed.\n", report.failures, report.findings.size());
  } else if (report.warnings > 0) {
    fmt::print("\nWherry works here; {} of {} checks say what could be better.\n", report.warnings,
               report.findings.size());
  } else {
    fmt::print("\nWherry works here.\n");
  }
}

void print_json(const Report& report) {
  auto checks = nlohmann::json::array();
  for (const auto& [name, finding] : report.findings) {
    checks.push_back(
        {{"name", name}, {"verdict", word(finding.verdict)}, {"found", finding.found}, {"advice", finding.advice}});
  }
  const nlohmann::json object{
      {"ok", report.failures == 0}, {"warnings", report.warnings}, {"failures", report.failures}, {"checks", checks}};
  fmt::print("{}\n", json_text(object));
}

int diagnose(bool json) {
  const Report report = examine();
  json ? print_json(report) : print_text(report);
  return report.failures == 0 ? 0 : 1;
}

}  // namespace

Action add_doctor(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON instead of text");
  command.footer("Exit status: 0 if nothing failed (warnings are no failures), else 1.");
  return [json] { return diagnose(*json); };
}

}  // namespace wherry::tools
