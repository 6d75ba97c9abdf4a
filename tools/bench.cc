// SPDX-License-Identifier: Apache-2.0
//
// wherry bench: measures this machine, Wherry and what else there is, in turns.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/harness/campaign.hpp"
#include "bench/harness/environment.hpp"
#include "bench/harness/placement_probe.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/harness/processor.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/table.hpp"
#include "bench/questions/questions.hpp"
#include "bench/systems/systems.hpp"
#include "bench_options.hpp"
#include "bench_plot.hpp"
#include "commands.hpp"

namespace wherry::tools {
namespace {

constexpr int kUsageError = 2;

void say(const bench::Circumstances& circumstances) {
  for (const bench::Failure& failure : circumstances.failures) {
    fmt::print(stderr, "wherry bench: {}, {}: {}\n", failure.point, failure.system, failure.reason);
  }
  if (!circumstances.worst.disturbing()) return;
  fmt::print(
      stderr,
      "wherry bench: others were busy meanwhile: up to {:.0f} % of a core, and {:.0f} % taken by the hypervisor; {} "
      "samples were taken again\n",
      100 * circumstances.worst.busy, 100 * circumstances.worst.steal, circumstances.retaken);
}

std::vector<bench::Row> measure(const bench::Asked& question, const bench::Options& options,
                                const std::vector<bench::System*>& systems, bench::Circumstances& circumstances) {
  if (question.measure != nullptr) {
    circumstances.placement.not_probed = "this question keeps nobody on a core";
    return question.measure(options, systems, circumstances);
  }
  const std::vector<int> cores = bench::cores_to_probe(options).cores;
  const bench::Prober prober = cores.empty() ? bench::Prober() : bench::probe_between({cores[0], cores[1]});
  bench::Campaign campaign(options, systems, question.points(options), prober);
  std::vector<bench::Row> rows = campaign.run();
  circumstances = campaign.circumstances();
  return rows;
}

/// What is here of the question's own systems and of those beside it; says what is not.
std::vector<bench::System*> find_all(const bench::Asked& question, const bench::Registry& registry) {
  std::vector<bench::System*> systems = registry.select({});
  std::erase_if(systems, [&question](const auto* one) { return !bench::concerns(question, *one); });
  for (const bench::Missing& one : registry.missing) {
    if (bench::misses(question, one)) fmt::print(stderr, "wherry bench: {} is left out: {}\n", one.name, one.reason);
  }
  return systems;
}

void ask(const bench::Asked& question, const BenchArguments& arguments) {
  const bench::Options options = arguments.options(question);
  bench::Registry registry = bench::find_systems();
  std::erase_if(registry.missing,
                [&](const auto& one) { return !one.question.empty() && one.question != question.name; });
  const std::vector<bench::System*> systems =
      options.systems.empty() ? find_all(question, registry) : registry.select(options.systems, question.name);
  // Names of its own, so that nothing of this user's gets in between.
  ::setenv("WHERRY_JOB", fmt::format("bench-{}", ::getpid()).c_str(), 1);
  bench::Circumstances circumstances;
  const std::vector<bench::Row> rows = measure(question, options, systems, circumstances);
  say(circumstances);
  fmt::print("{}\n{}\n", text_of(bench::this_processor()), text_of(circumstances.placement));
  fmt::print("{}", question.tables(rows, options));
  if (rows.empty()) throw std::runtime_error("nothing could be measured");
  const nlohmann::json run = describe_run(options, registry, systems, circumstances);
  if (!arguments.json.empty()) write_json(arguments.json, rows, run);
  if (!arguments.plot.empty()) draw(arguments.plot, rows, run);
}

}  // namespace

Action add_bench(CLI::App& command) {
  command.require_subcommand(1);
  auto arguments = std::make_shared<BenchArguments>();
  std::vector<std::pair<CLI::App*, const bench::Asked*>> asked;
  for (const bench::Asked& question : bench::questions()) {
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
      return kUsageError;
    }
  };
}

}  // namespace wherry::tools
