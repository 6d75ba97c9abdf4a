// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/harness/placement_probe.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/harness/table.hpp"
#include "bench/questions/questions.hpp"

namespace wherry::bench {
namespace {

bool stands_beside(const Asked& question, const std::string& system) {
  return std::find(question.beside.begin(), question.beside.end(), system) != question.beside.end();
}

}  // namespace

bool has_option(const Asked& question, const std::string& option) {
  return std::none_of(question.without.begin(), question.without.end(),
                      [&](const Without& one) { return one.option == option; });
}

std::vector<Row> measure(const Asked& question, const Options& options, const std::vector<System*>& systems,
                         Circumstances& circumstances) {
  if (question.measure != nullptr) {
    circumstances.placement.not_probed = "this question keeps nobody on a core";
    return question.measure(options, systems, circumstances);
  }
  const std::vector<int> cores = cores_to_probe(options).cores;
  const Prober prober = cores.empty() ? Prober() : probe_between({cores[0], cores[1]});
  Campaign campaign(options, systems, question.points(options), prober);
  std::vector<Row> rows = campaign.run();
  circumstances = campaign.circumstances();
  return rows;
}

bool concerns(const Asked& question, const System& system) {
  if (question.chooses != nullptr) return question.chooses(system.name(), system.question());
  if (question.limits_only && !is_limit(system.name())) return false;
  if (!system.question().empty()) return system.question() == question.name;
  return (question.beside.empty() && !question.own_only) || stands_beside(question, system.name());
}

bool misses(const Asked& question, const Missing& missing) {
  if (question.chooses != nullptr) return question.chooses(missing.name, missing.question);
  return missing.question.empty() ? stands_beside(question, missing.name) : missing.question == question.name;
}

}  // namespace wherry::bench
