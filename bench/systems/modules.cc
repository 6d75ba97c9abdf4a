// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/modules.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include "bench/harness/programs/folders.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "wherry-peer-";

std::vector<fs::path> modules_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && name.ends_with(".so")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// What signals do is this program's affair, and stays as it is while libraries are loaded: one of libfabric's handles
/// SIGTERM and SIGINT by exit(), which waits for ever if the heap was in use.
class KeptSignals {
 public:
  KeptSignals() {
    for (int number = 1; number < NSIG; ++number) {
      const auto index = static_cast<std::size_t>(number);
      known_[index] = ::sigaction(number, nullptr, &actions_[index]) == 0;
    }
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;
  ~KeptSignals() {
    for (int number = 1; number < NSIG; ++number) {
      const auto index = static_cast<std::size_t>(number);
      if (known_[index]) ::sigaction(number, &actions_[index], nullptr);
    }
  }

 private:
  std::array<bool, NSIG> known_{};
  std::array<struct sigaction, NSIG> actions_{};
};

void load(const fs::path& module, Registry& registry) {
  const KeptSignals kept;
  const auto missing = [&](const std::string& reason) {
    registry.missing.push_back({module.stem().string().substr(std::string_view(kPrefix).size()), reason});
  };
  // Local, so that two libraries that bring their own copy of something do not meet.
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return missing(::dlerror());
  auto* make = reinterpret_cast<Systems* (*)()>(::dlsym(handle, "wherry_bench_systems"));
  if (make == nullptr) return missing("the module exports no systems");
  try {
    for (auto& system : *make()) registry.systems.push_back(std::move(system));
  } catch (const std::exception& error) {
    missing(error.what());
  }
}

bool has(const Registry& registry, const std::string& name) {
  return std::any_of(registry.systems.begin(), registry.systems.end(),
                     [&](const auto& system) { return system->name() == name; });
}

/// Systems of libraries that were missing when Wherry was built. libraries/CMakeLists.txt says which package has them.
void add_unbuilt(Registry& registry) {
  std::istringstream words(WHERRY_BENCH_PACKAGES);
  for (std::string system, package; words >> system >> package;) {
    if (has(registry, system)) continue;
    registry.missing.push_back(
        {system, fmt::format("install {} (scripts/setup bench installs all peers) and build again", package)});
  }
}

}  // namespace

void add_modules(Registry& registry) {
  for (const fs::path& folder : program_folders("WHERRY_BENCH_PEERS")) {
    for (const fs::path& module : modules_in(folder)) load(module, registry);
  }
  add_unbuilt(registry);
}

}  // namespace wherry::bench
