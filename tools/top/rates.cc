// SPDX-License-Identifier: Apache-2.0
#include "top/rates.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace wherry::tools {
namespace {

// Identifies an endpoint across readings.
using Identity = std::tuple<pid_t, std::uint64_t, std::uint32_t, std::uint64_t>;

Identity identity(const ProcessReading& process, const EndpointReading& endpoint) {
  return {process.pid, process.started_ns, endpoint.record, endpoint.generation};
}

using Endpoints = std::map<Identity, const EndpointReading*>;

Endpoints by_identity(const Reading& reading) {
  Endpoints endpoints;
  for (const ProcessReading& process : reading.processes) {
    for (const EndpointReading& endpoint : process.endpoints) endpoints[identity(process, endpoint)] = &endpoint;
  }
  return endpoints;
}

Rates rates_between(const EndpointReading& before, const EndpointReading& now, double seconds) {
  // A decreasing counter is a false claim, or a reading from before the first one: no rate.
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return to > from && seconds > 0 ? static_cast<double>(to - from) / seconds : 0;
  };
  return {.bytes_sent = rate(before.bytes_sent, now.bytes_sent),
          .sends = rate(before.sends, now.sends),
          .bytes_received = rate(before.bytes_received, now.bytes_received),
          .receives = rate(before.receives, now.receives),
          .sleeps = rate(before.send_sleeps, now.send_sleeps) + rate(before.receive_sleeps, now.receive_sleeps),
          .wakes = rate(before.data_wakes, now.data_wakes) + rate(before.space_wakes, now.space_wakes)};
}

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e9 : 0;
}

}  // namespace

std::vector<Activity> activities(const Reading& before, const Reading& now) {
  const Endpoints earlier = by_identity(before);
  std::vector<Activity> all;
  for (const ProcessReading& process : now.processes) {
    for (const EndpointReading& endpoint : process.endpoints) {
      const auto found = earlier.find(identity(process, endpoint));
      const Rates rates = found != earlier.end()
                              ? rates_between(*found->second, endpoint, seconds_between(before.at_ns, now.at_ns))
                              : rates_between({}, endpoint, seconds_between(endpoint.opened_ns, now.at_ns));
      all.push_back({&process, &endpoint, rates});
    }
  }
  const auto order = [](const Activity& a) {
    return std::tuple(-(a.rates.bytes_sent + a.rates.bytes_received), a.process->pid, a.endpoint->record);
  };
  std::sort(all.begin(), all.end(), [&](const Activity& a, const Activity& b) { return order(a) < order(b); });
  return all;
}

}  // namespace wherry::tools
