// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/programs/programs.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "bench/harness/programs/folders.hpp"
#include "bench/systems/programs/description.hpp"
#include "bench/systems/programs/program_system.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> peers_in(const fs::path& place) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored)) {
    if (fs::exists(entry.path() / "peer.json", ignored)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Programs of this folder that have not been built.
void add_unbuilt(Registry& registry) {
  std::istringstream known_here(WHERRY_BENCH_PROGRAMS);
  for (std::string entry; known_here >> entry;) {
    const std::string name = entry.substr(0, entry.find(':'));
    const bool here = std::any_of(registry.systems.begin(), registry.systems.end(),
                                  [&](const auto& system) { return system->name() == name; });
    const bool known = std::any_of(registry.missing.begin(), registry.missing.end(),
                                   [&](const Missing& one) { return one.name == name; });
    const std::string question = name == entry ? "" : entry.substr(name.size() + 1);
    if (!here && !known) registry.missing.push_back({name, "not built; scripts/build-peers does it", question});
  }
}

void add(const fs::path& folder, Registry& registry) {
  try {
    Description description = read_description(folder);
    if (!description.missing.empty()) {
      registry.missing.push_back({description.name, description.missing, description.question});
    } else {
      registry.systems.push_back(std::make_unique<ForeignSystem>(std::move(description)));
    }
  } catch (const std::exception& error) {
    registry.missing.push_back({folder.filename(), error.what()});
  }
}

}  // namespace

void add_programs(Registry& registry) {
  for (const fs::path& place : peer_folders()) {
    for (const fs::path& folder : peers_in(place)) add(folder, registry);
  }
  add_unbuilt(registry);
}

}  // namespace wherry::bench
