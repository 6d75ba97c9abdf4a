// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/environment.hpp"

#include <nlohmann/json.hpp>

namespace wherry::bench {
namespace {

using nlohmann::json;

json describe(std::span<System* const> systems) {
  json list = json::object();
  for (const System* system : systems) {
    list[system->name()] = {
        {"version", system->version()}, {"settings", system->settings()}, {"in_place", system->in_place()}};
  }
  return list;
}

json not_found(const Registry& registry) {
  json list = json::object();
  for (const Missing& one : registry.missing) list[one.name] = one.reason;
  return list;
}

json figures_of(const Placement& one) {
  return {{"round_trip_ns", one.middle.round_trip_ns}, {"copy_GB/s", one.middle.copy_gb_s}, {"probes", one.probes}};
}

json describe(const PlacementSummary& placement) {
  if (placement.cores.empty()) return {{"not_probed", placement.not_probed}};
  json described = {{"cores", placement.cores}, {"retaken", placement.retaken}, {"elsewhere", placement.elsewhere}};
  if (!placement.found.empty()) described["counted"] = figures_of(placement.found[0]);
  described["others"] = json::array();
  for (std::size_t i = 1; i < placement.found.size(); ++i)
    described["others"].push_back(figures_of(placement.found[i]));
  return described;
}

json failed(const Circumstances& circumstances) {
  json list = json::array();
  for (const Failure& one : circumstances.failures) {
    list.push_back({{"system", one.system}, {"point", one.point}, {"reason", one.reason}});
  }
  return list;
}

}  // namespace

json describe_run(const Options& options, const Registry& registry, std::span<System* const> systems,
                  const Circumstances& circumstances) {
  json run = {{"samples", options.samples},
              {"bytes", options.bytes},
              {"seed", options.seed},
              {"systems", describe(systems)},
              {"not_found", not_found(registry)},
              {"failed", failed(circumstances)},
              {"foreign_load_max", circumstances.worst.busy},
              {"steal_max", circumstances.worst.steal},
              {"retaken", circumstances.retaken},
              {"placement", describe(circumstances.placement)}};
  if (options.seconds > 0) run["seconds"] = options.seconds;
  if (!options.cores.empty()) run["cores_pinned_to"] = options.cores;
  return run;
}

}  // namespace wherry::bench
