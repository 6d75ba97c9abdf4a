// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/mpi/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/harness/programs/folders.hpp"
#include "bench/harness/programs/program.hpp"

namespace wherry::bench::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "wherry-bench-mpi";

const std::vector<MpiSystem::Description>& descriptions() {
  static const std::vector<MpiSystem::Description> all{
      {.name = "mpich", .settings = "shared memory of the PyPI wheel, with its defaults", .mpi = "mpich"},
      {.name = "mpich-yield",
       .settings = "the same with MPIR_CVAR_ENABLE_HEAVY_YIELD=1, for more ranks than cores",
       .mpi = "mpich",
       .environment = {"MPIR_CVAR_ENABLE_HEAVY_YIELD=1"},
       .oversubscribed = true},
      {.name = "mpich-ofi-shm",
       .settings = "libfabric's shm for all ranks (MPIR_CVAR_NOLOCAL=1)",
       .mpi = "mpich",
       .environment = {"FI_PROVIDER=shm", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1"}},
      {.name = "mpich-ofi-tcp",
       .settings = "libfabric's tcp for all ranks (MPIR_CVAR_NOLOCAL=1)",
       .mpi = "mpich",
       .environment = {"FI_PROVIDER=tcp", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1"}},
      {.name = "wherry-mpich-adaptive",
       .settings = "wherry mpirun --layout adaptive",
       .mpi = "mpich",
       .layout = "adaptive"},
      {.name = "wherry-mpich-topology",
       .settings = "wherry mpirun --layout topology",
       .mpi = "mpich",
       .layout = "topology"},
      {.name = "wherry-mpich-equal", .settings = "wherry mpirun --layout equal", .mpi = "mpich", .layout = "equal"},
      {.name = "ompi",
       .settings = "shared memory of the PyPI wheel, with its defaults (it yields with more ranks than cores)",
       .mpi = "ompi"},
      {.name = "ompi-ofi-tcp",
       .settings = "libfabric's tcp for all ranks (pml cm, mtl ofi)",
       .mpi = "ompi",
       .environment = {"OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi", "OMPI_MCA_opal_common_ofi_provider_include=tcp"}},
      {.name = "wherry-ompi-adaptive",
       .settings = "wherry mpirun --layout adaptive",
       .mpi = "ompi",
       .layout = "adaptive"},
      {.name = "wherry-ompi-topology",
       .settings = "wherry mpirun --layout topology",
       .mpi = "ompi",
       .layout = "topology"},
      {.name = "wherry-ompi-equal", .settings = "wherry mpirun --layout equal", .mpi = "ompi", .layout = "equal"},
  };
  return all;
}

bool has_provider() {
  std::error_code ignored;
  return fs::exists(library_folder() / "mpi/libwherry-fi.so", ignored);
}

/// Why that system cannot run here; empty: it can.
std::string hindrance(const MpiSystem::Description& system, const std::optional<fs::path>& folder) {
  std::error_code ignored;
  if (!folder || !fs::exists(*folder / kProgram, ignored)) {
    return fmt::format("its program is not built; scripts/build-peers {} does it", system.mpi);
  }
  if (system.layout != nullptr && !has_provider()) {
    return "libwherry-fi.so is not beside this program; make build builds it";
  }
  return {};
}

}  // namespace

Outcome MpiSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

bool MpiSystem::can(std::uint32_t ranks) const {
  return !description_.oversubscribed || ranks > std::thread::hardware_concurrency();
}

std::vector<std::string> MpiSystem::command(std::uint32_t ranks) const {
  // A container's only user is root.
  std::vector<std::string> words{"/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  words.insert(words.end(), description_.environment.begin(), description_.environment.end());
  const std::string number = std::to_string(ranks);
  if (description_.layout != nullptr) {
    words.insert(words.end(), {wherry_program(), "mpirun", "-n", number, "--layout", description_.layout});
    if (!budget_.empty()) words.insert(words.end(), {"--budget", budget_});
  } else {
    words.insert(words.end(), {folder_ / "venv/bin/mpiexec", "-n", number});
    if (description_.mpi == std::string("ompi")) {
      words.insert(words.end(), {"--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"});
    }
  }
  words.push_back(folder_ / kProgram);
  return words;
}

Finding MpiSystem::take(std::uint32_t ranks, std::span<const Job> jobs, std::chrono::seconds timeout) {
  const auto deadline = Program::Clock::now() + timeout;
  Program program(command(ranks), deadline);
  version_ = program.version();
  Finding finding;
  for (const Job& job : jobs) {
    program.tell("sample " + to_line(job));
    try {
      finding.measures.push_back(measures_in(program.hear("done", deadline)));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{} of {} bytes: {}", job.figure, job.bytes, error.what()));
    }
  }
  return finding;
}

void add_systems(Registry& registry) {
  for (const MpiSystem::Description& one : descriptions()) {
    const std::optional<fs::path> folder = find_peer_folder(one.mpi);
    if (std::string why = hindrance(one, folder); !why.empty()) {
      registry.missing.push_back({one.name, std::move(why), "mpi"});
    } else {
      registry.systems.push_back(std::make_unique<MpiSystem>(one, *folder));
    }
  }
}

}  // namespace wherry::bench::mpi
