// SPDX-License-Identifier: Apache-2.0
#include "doctor/peer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/namespaces.hpp"
#include "base/own_host.hpp"
#include "fabric/check.hpp"
#include "fabric/fabric.hpp"
#include "fabric/rendezvous.hpp"
#include "fabric/shm/connecting.hpp"
#include "fabric/shm/elsewhere.hpp"

namespace wherry::tools::doctor {
namespace {

Address address_to_try(const std::string& text) {
  Address address = Address::parse(text);
  if (address.fabric.empty()) address.fabric = fabric::configured_name();
  fabric::check_target(address);
  if (address.fabric == "hosts") {
    if (!own_place()->is_here(*address.node)) {
      throw Error(EINVAL, "diagnose", address.to_string(), "it is on another host: use wherry doctor --network HOST");
    }
    address.fabric = "shm";
  }
  if (address.fabric == "shm") return address;
  throw Error(EINVAL, "diagnose", address.to_string(), "only addresses of the fabric shm have listeners to look for");
}

void describe_listener(const Peer& peer, PeerDiagnosis& diagnosis) {
  diagnosis.reachable = true;
  diagnosis.process = peer.pid;
  if (peer.pid != 0) {
    diagnosis.found = fmt::format("process {} of user {} listens there", peer.pid, peer.uid);
    return;
  }
  diagnosis.found = fmt::format("a process of user {} in another pid namespace listens there", peer.uid);
  diagnosis.advice =
      "also share the pid namespace: without it large messages go through the ring and files are not lent "
      "(docs/containers.md)";
}

void look_elsewhere(const Address& address, PeerDiagnosis& diagnosis) {
  for (const auto& other : fabric::shm::listeners_elsewhere(*address.node, *address.port)) {
    if (diagnosis.others.size() == PeerDiagnosis::kMostOthers) break;
    diagnosis.others.push_back({"a listener is there" + other.difference(), other.remedy()});
  }
  diagnosis.found = "nobody listens there";
  diagnosis.advice = "start the listener first";
  // The kernel shows only sockets of processes in the same pid namespace, and below.
  if (is_initial_namespace("pid") == false) {
    diagnosis.advice +=
        "; if it runs outside this container, run this command on the host, because this process cannot see processes "
        "there";
  }
}

}  // namespace

PeerDiagnosis diagnose_peer(const std::string& text) {
  const Address address = address_to_try(text);
  PeerDiagnosis diagnosis;
  diagnosis.address = address.to_string();
  diagnosis.place = fabric::shm::place_of_search();
  try {
    Peer peer;
    (void)fabric::shm::reach_listener(address, peer);
    describe_listener(peer, diagnosis);
  } catch (const fabric::QueueFull& error) {
    diagnosis.found = "somebody listens there, and does not accept";
    diagnosis.advice = error.advice();
  } catch (const Error& error) {
    if (error.code().value() == ECONNREFUSED) {
      look_elsewhere(address, diagnosis);
    } else {
      diagnosis.found = error.code().message();
      diagnosis.advice = error.advice();
    }
  }
  return diagnosis;
}

std::string PeerDiagnosis::to_text() const {
  std::string text =
      fmt::format("{} is {} for {}: {}\n", address, reachable ? "reachable" : "not reachable", place, found);
  for (const Other& other : others) text += fmt::format("{}\n  -> {}\n", other.found, other.advice);
  // If there are other listeners, the first advice is how to reach one of them.
  if (!advice.empty()) text += fmt::format("  -> {}{}\n", others.empty() ? "" : "otherwise ", advice);
  return text;
}

nlohmann::json PeerDiagnosis::to_json() const {
  auto list = nlohmann::json::array();
  for (const Other& other : others) list.push_back({{"found", other.found}, {"advice", other.advice}});
  return {{"address", address}, {"reachable", reachable}, {"place", place},   {"process", process},
          {"found", found},     {"advice", advice},       {"elsewhere", list}};
}

}  // namespace wherry::tools::doctor
