// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/mpi/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "base/config.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/rounds.hpp"
#include "bench/systems/mpi/systems.hpp"

namespace wherry::bench::mpi {
namespace {

/// Of one launch.
constexpr std::chrono::seconds kJobTimeout{300};

constexpr std::uint64_t kKiB = 1 << 10;
/// Of 384 x 384 cells, as much as 48 processors' 384 KiB of buffers hold three times; and of 256 x 256 complex numbers.
constexpr std::uint64_t kHeat = 384 * 384 * 8;
constexpr std::uint64_t kFft = 256 * 256 * 16;

/// A figure, and which sizes it has; none: those of --sizes.
struct Kind {
  const char* figure;
  std::vector<std::uint64_t> sizes;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"latency", {}},
      {"bandwidth", {}},
      {"halo-1", {kKiB, 16 * kKiB}},
      {"halo-2", {kKiB, 16 * kKiB}},
      {"halo-3", {kKiB, 16 * kKiB}},
      {"allreduce", {8, 64 * kKiB}},
      {"heat", {kHeat}},
      {"fft", {kFft}},
      {"memory", {0}},  // When everything has been in use.
  };
  return all;
}

using Entry = Contender<MpiSystem, Finding>;

std::vector<Entry> able(std::span<System* const> systems, std::uint32_t ranks) {
  std::vector<Entry> entries;
  for (System* system : systems) {
    auto* own = dynamic_cast<MpiSystem*>(system);
    if (own != nullptr && own->can(ranks)) entries.push_back({own});
  }
  return entries;
}

std::string check_budget(const std::string& text) {
  try {
    config::parse_bytes("--budget", text);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  std::vector<std::string> words;
  for (const Kind& kind : kinds()) words.emplace_back(kind.figure);
  command.add_option("--figures", options.mpi.figures, fmt::format("Of {}; default: all", fmt::join(words, ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(words));
  command.add_option("--budget", options.mpi.budget, "Of wherry mpirun: bytes of each process's buffer")
      ->check(check_budget);
}

std::vector<Job> jobs(const Options& options) {
  const std::vector<std::string>& asked = options.mpi.figures;
  std::vector<Job> found;
  for (const Kind& kind : kinds()) {
    if (!asked.empty() && std::find(asked.begin(), asked.end(), kind.figure) == asked.end()) continue;
    for (const std::uint64_t bytes : kind.sizes.empty() ? options.sizes : kind.sizes) {
      found.push_back({kind.figure, bytes, options.seconds});
    }
  }
  return found;
}

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances) {
  for (System* system : systems) {
    if (auto* own = dynamic_cast<MpiSystem*>(system)) own->set_budget(options.mpi.budget);
  }
  const std::vector<Job> all = jobs(options);
  std::size_t launches = 0;
  for (const std::uint32_t ranks : options.senders) launches += able(systems, ranks).size();
  if (launches == 0) throw std::runtime_error("no MPI is here that could be measured");
  Progress progress(launches * static_cast<std::size_t>(options.samples));
  std::mt19937_64 random(options.seed);
  std::vector<Row> rows;
  for (const std::uint32_t ranks : options.senders) {
    std::vector<Entry> entries = able(systems, ranks);
    Rounds(options, fmt::format("mpi, {} ranks", ranks), progress, circumstances)
        .run(entries, random, [&](MpiSystem& system) { return system.take(ranks, all, kJobTimeout); });
    for (const Entry& entry : entries) {
      if (!entry.failed) append_rows(rows, *entry.system, ranks, all, entry.findings);
    }
  }
  progress.clear();
  return rows;
}

}  // namespace wherry::bench::mpi
