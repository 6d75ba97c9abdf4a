// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/registry.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace wherry::bench {
namespace {

System* pick(const Systems& systems, const std::string& name, const std::string& question) {
  System* found = nullptr;
  for (const auto& system : systems) {
    if (system->name() != name) continue;
    if (system->question() == question) return system.get();
    if (found == nullptr || system->question().empty()) found = system.get();
  }
  return found;
}

}  // namespace

std::vector<System*> Registry::select(std::span<const std::string> names, const std::string& question) const {
  std::vector<System*> selected;
  std::string known;
  for (const auto& system : systems) {
    if (names.empty()) selected.push_back(system.get());
    known += (known.empty() ? "" : " ") + system->name();
  }
  for (const std::string& name : names) {
    if (System* found = pick(systems, name, question); found != nullptr) {
      selected.push_back(found);
      continue;
    }
    for (const Missing& one : missing) {
      if (one.name == name) throw std::invalid_argument(fmt::format("{} is not here: {}", name, one.reason));
    }
    throw std::invalid_argument(fmt::format("there is no system {}; there are: {}", name, known));
  }
  return selected;
}

}  // namespace wherry::bench
