// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/environment.hpp"

#include <nlohmann/json.hpp>

namespace wherry::bench {
namespace {

using nlohmann::json;

json systems(const Campaign& campaign) {
  json list = json::array();
  for (const System* system : campaign.systems()) {
    list.push_back({{"name", system->name()}, {"version", system->version()}, {"settings", system->settings()}});
  }
  return list;
}

json missing(const Registry& registry) {
  json list = json::array();
  for (const Missing& one : registry.missing) list.push_back({{"name", one.name}, {"reason", one.reason}});
  return list;
}

json failures(const Campaign& campaign) {
  json list = json::array();
  for (const Failure& one : campaign.failures()) {
    list.push_back({{"system", one.system}, {"point", one.point}, {"reason", one.reason}});
  }
  return list;
}

}  // namespace

json describe_run(const Options& options, const Registry& registry, const Campaign& campaign) {
  return {{"samples", options.samples},
          {"seconds", options.seconds},
          {"bytes", options.bytes},
          {"pinned_to", options.cores},
          {"seed", options.seed},
          {"systems", systems(campaign)},
          {"missing", missing(registry)},
          {"failures", failures(campaign)},
          {"foreign_cores_busy_at_most", campaign.worst_load().busy},
          {"foreign_cores_steal_at_most", campaign.worst_load().steal},
          {"samples_taken_again", campaign.retaken()}};
}

}  // namespace wherry::bench
