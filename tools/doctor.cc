// SPDX-License-Identifier: Apache-2.0
//
// wherry doctor: checks whether Wherry works on this machine, for this user and in this environment, and advises what
// to change; or diagnoses why an address cannot be reached.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "commands.hpp"
#include "common/json_text.hpp"
#include "doctor/check.hpp"
#include "doctor/network.hpp"
#include "doctor/peer.hpp"
#include "fabric/shm/elsewhere.hpp"

namespace wherry::tools {
namespace {

using doctor::Finding;
using doctor::NamedFinding;
using doctor::Verdict;

struct Check {
  const char* name;
  Finding (*look)();
};

// Ordered by dependency: the first failure explains those after it.
constexpr std::array kChecks{
    Check{"reach", doctor::check_reach},
    Check{"namespaces", doctor::check_namespaces},
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
    Check{"mounting", doctor::check_mounting},
    Check{"passthrough of mounts", doctor::check_passthrough},
    Check{"limits of mounts", doctor::check_mount_limits},
    Check{"leases of files", doctor::check_leases},
    Check{"settings", doctor::check_settings},
    Check{"stream", doctor::check_stream},
};

struct Report {
  std::string place;  ///< user, job and network namespace of the findings
  std::vector<NamedFinding> findings;
  int warnings = 0;
  int failures = 0;

  void add(NamedFinding finding) {
    warnings += finding.finding.verdict == Verdict::warn ? 1 : 0;
    failures += finding.finding.verdict == Verdict::fail ? 1 : 0;
    findings.push_back(std::move(finding));
  }
};

Report examine() {
  Report report;
  report.place = fabric::shm::place_of_search();
  for (const Check& check : kChecks) report.add({check.name, check.look()});
  return report;
}

Report examine_network(const std::string& host) {
  Report report;
  report.place = host.empty() ? "other hosts" : printable(host);
  for (NamedFinding& each : doctor::check_network(host)) report.add(std::move(each));
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

void print_findings(const Report& report) {
  for (const auto& [name, finding] : report.findings) {
    fmt::print("{:<4}  {:<25}  {}\n", word(finding.verdict), name, finding.found);
    if (!finding.advice.empty()) fmt::print("{:<4}  {:<25}  -> {}\n", "", "", finding.advice);
  }
}

void print_text(const Report& report) {
  print_findings(report);
  if (report.failures > 0) {
    fmt::print("\nWherry does not work here for {}: {} of {} checks failed.\n", report.place, report.failures,
               report.findings.size());
  } else if (report.warnings > 0) {
    fmt::print("\nWherry works here for {}; {} of {} checks advise improvements.\n", report.place, report.warnings,
               report.findings.size());
  } else {
    fmt::print("\nWherry works here for {}.\n", report.place);
  }
}

void print_json(const Report& report) {
  auto checks = nlohmann::json::array();
  for (const auto& [name, finding] : report.findings) {
    checks.push_back(
        {{"name", name}, {"verdict", word(finding.verdict)}, {"found", finding.found}, {"advice", finding.advice}});
  }
  const nlohmann::json object{{"ok", report.failures == 0},
                              {"place", report.place},
                              {"warnings", report.warnings},
                              {"failures", report.failures},
                              {"checks", checks}};
  fmt::print("{}\n", json_text(object));
}

int diagnose_address(const std::string& address, bool json) {
  const doctor::PeerDiagnosis diagnosis = doctor::diagnose_peer(address);
  fmt::print("{}", json ? json_text(diagnosis.to_json()) + "\n" : diagnosis.to_text());
  return diagnosis.reachable ? 0 : 1;
}

int diagnose_network(const std::string& host, bool json) {
  const Report report = examine_network(host);
  if (json) {
    print_json(report);
  } else {
    print_findings(report);
    fmt::print("\n{}\n", report.failures == 0
                             ? fmt::format("Nothing is wrong here with the network to {}.", report.place)
                             : fmt::format("{} of {} checks of the network to {} say what to change.", report.failures,
                                           report.findings.size(), report.place));
  }
  return report.failures == 0 ? 0 : 1;
}

int diagnose(bool json) {
  const Report report = examine();
  json ? print_json(report) : print_text(report);
  return report.failures == 0 ? 0 : 1;
}

}  // namespace

Action add_doctor(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  auto peer = std::make_shared<std::string>();
  command.add_flag("--json", *json, "Print JSON instead of text");
  command.add_option("--peer", *peer,
                     "Diagnose only one address, such as wherry://0:2000: whether a connect reaches a listener; if "
                     "not, which listener it misses and what to change");
  auto host = std::make_shared<std::string>();
  const CLI::Option* const network = command
                                         .add_option("--network", *host,
                                                     "Check only the network to other hosts: names, routes, ports, "
                                                     "key, versions; to HOST, or to each other host of WHERRY_HOSTS")
                                         ->expected(0, 1)
                                         ->type_name("[HOST]")
                                         ->excludes("--peer");
  command.footer(
      "Exit status: 0 if no check failed (a warning is not a failure), else 1. With --peer: 0 if a listener is "
      "reached, else 1.\n"
      "With --network: 0 if every line says OK, else 1.");
  return [json, peer, host, network] {
    if (network->count() > 0) return diagnose_network(*host, *json);
    return peer->empty() ? diagnose(*json) : diagnose_address(*peer, *json);
  };
}

}  // namespace wherry::tools
