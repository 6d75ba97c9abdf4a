// SPDX-License-Identifier: Apache-2.0
//
// The program wherry-bench, which `wherry bench` starts: measures this machine, Wherry and what else there is, in
// turns.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/standard_descriptors.hpp"
#include "bench/harness/campaign.hpp"
#include "bench/harness/environment.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/harness/processor.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/table.hpp"
#include "bench/program/options.hpp"
#include "bench/program/plot.hpp"
#include "bench/questions/questions.hpp"
#include "bench/systems/net/driver.hpp"
#include "bench/systems/net/listening.hpp"
#include "bench/systems/systems.hpp"
#include "manual/program.hpp"

namespace wherry::bench {
namespace {

void say(const Circumstances& circumstances) {
  for (const Failure& failure : circumstances.failures) {
    fmt::print(stderr, "wherry bench: {}, {}: {}\n", failure.point, failure.system, failure.reason);
  }
  if (!circumstances.worst.disturbing()) return;
  fmt::print(
      stderr,
      "wherry bench: others were busy meanwhile: up to {:.0f} % of a core, and {:.0f} % taken by the hypervisor; {} "
      "samples were taken again\n",
      100 * circumstances.worst.busy, 100 * circumstances.worst.steal, circumstances.retaken);
}

/// What is here of the question's own systems and of those beside it; says what is not.
std::vector<System*> find_all(const Asked& question, const Registry& registry) {
  std::vector<System*> systems = registry.select({});
  std::erase_if(systems, [&question](const auto* one) { return !concerns(question, *one); });
  for (const Missing& one : registry.missing) {
    if (misses(question, one)) fmt::print(stderr, "wherry bench: {} is left out: {}\n", one.name, one.reason);
  }
  return systems;
}

/// The hosts of the question `net`. Connects to the other one if the options name it.
std::shared_ptr<net::Hosts> hosts_of(const NetOptions& options) {
  if (options.connect.empty()) return net::two_namespaces();
  return std::make_shared<net::Driver>(options.connect, options.port);
}

[[noreturn]] void serve_other_host(const NetOptions& options) {
  const auto host = std::make_shared<net::ListeningHost>(options.port);
  host->serve(find_systems(host));
}

void ask(const Asked& question, const BenchArguments& arguments) {
  const Options options = arguments.options(question);
  if (options.net.listens) serve_other_host(options.net);
  // Before anything is measured: that may take minutes.
  if (!arguments.json.empty() && arguments.json != "-") check_writable("--json", arguments.json);
  if (!arguments.plot.empty()) check_drawing(arguments.plot);
  Registry registry = find_systems(hosts_of(options.net));
  std::erase_if(registry.missing, [&](const auto& one) { return !one.question.empty() && !misses(question, one); });
  const std::vector<System*> systems =
      options.systems.empty() ? find_all(question, registry) : registry.select(options.systems, question.name);
  // In a job of its own, this run shares no address or file name with other programs of this user.
  ::setenv("WHERRY_JOB", fmt::format("bench-{}", ::getpid()).c_str(), 1);
  Circumstances circumstances;
  const std::vector<Row> rows = measure(question, options, systems, circumstances);
  say(circumstances);
  fmt::print("{}\n{}\n", text_of(this_processor()), text_of(circumstances.placement));
  fmt::print("{}", question.tables(rows, options));
  if (rows.empty()) throw std::runtime_error("nothing could be measured");
  const nlohmann::json run = describe_run(options, registry, systems, circumstances);
  if (!arguments.json.empty()) write_json(arguments.json, rows, run);
  if (!arguments.plot.empty()) draw(arguments.plot, rows, run);
}

/// Declares the questions as subcommands. Returns what asks the one that is given.
manual::Action add_questions(CLI::App& command) {
  command.require_subcommand(1);
  auto arguments = std::make_shared<BenchArguments>();
  std::vector<std::pair<CLI::App*, const Asked*>> asked;
  for (const Asked& question : questions()) {
    CLI::App* added = command.add_subcommand(question.name, question.help);
    arguments->add_to(*added, question);
    asked.emplace_back(added, &question);
  }
  return [arguments, asked] {
    try {
      for (const auto& [subcommand, question] : asked) {
        if (subcommand->parsed()) ask(*question, *arguments);
      }
      return 0;
    } catch (const std::invalid_argument& error) {
      fmt::print(stderr, "wherry bench: {}\n", error.what());
      return manual::kUsageError;
    }
  };
}

}  // namespace
}  // namespace wherry::bench

int main(int argc, char** argv) {
  wherry::reserve_standard_descriptors();
  CLI::App app{"Measure this machine, and compare Wherry with other ways to move data", "wherry bench"};
  const wherry::manual::Action action = wherry::bench::add_questions(app);
  if (const auto status = wherry::manual::parse(app, "wherry bench", argc, argv)) return *status;
  return wherry::manual::run("wherry bench", action);
}
