// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/environment.hpp"

#include <nlohmann/json.hpp>

namespace wherry::bench {
namespace {

using nlohmann::json;

json systems(const Campaign& campaign) {
  json list = json::object();
  for (const System* system : campaign.systems()) {
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

json failed(const Campaign& campaign) {
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
          {"cores_pinned_to", options.cores},
          {"seed", options.seed},
          {"systems", systems(campaign)},
          {"not_found", not_found(registry)},
          {"failed", failed(campaign)},
          {"foreign_load_max", campaign.worst_load().busy},
          {"steal_max", campaign.worst_load().steal},
          {"retaken", campaign.retaken()}};
}

}  // namespace wherry::bench
