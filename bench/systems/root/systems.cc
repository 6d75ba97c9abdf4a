// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/systems.hpp"

#include <array>
#include <stdexcept>
#include <vector>

#include "bench/harness/programs/folders.hpp"

namespace wherry::bench::root {
namespace {

/// TMonitor takes no descriptors beyond 1023, and a connection has one below.
constexpr std::uint32_t kMostInMonitor = 1000;

// The names are those of bench/systems/root/program/systems.cc.
constexpr std::array kDescriptions{
    RootSystem::Description{
        "wherry",
        "files in the server's windows: WindowClient; filling: TScifFile; merging: wherry-merge with its "
        "default options, without the start of that program",
        true, true, true, true, true},
    RootSystem::Description{"wherry-tscif", "as tsocket-tcp-corrected, over TScif and TServerScif", true, true, true,
                            true, true, kMostInMonitor},
    RootSystem::Description{"tsocket-tcp",
                            "TMessages over TSocket, TCP on the loopback; filling: TParallelMergingFile; merging: the "
                            "loop of fastMergeServer.C as shipped (output with compression 1)",
                            true, true, true, true, true, UINT32_MAX, true},
    RootSystem::Description{"tsocket-unix", "as tsocket-tcp, over a Unix socket", true, true, true, true, true,
                            UINT32_MAX, true},
    RootSystem::Description{"tsocket-tcp-corrected",
                            "as tsocket-tcp, but the output has the files' compression, and a file of the user's own "
                            "class sends its exact bytes instead of blocks of 2 MiB",
                            false, true, true, true, true},
    RootSystem::Description{"tsocket-unix-corrected", "as tsocket-tcp-corrected, over a Unix socket", false, true, true,
                            true, true},
    RootSystem::Description{"hadd",
                            "each worker writes files of its own, then they are merged with the calls of hadd -f -fk, "
                            "without the start of that program",
                            false, false, true, true, true},
    RootSystem::Description{"tbuffermerger", "ROOT::TBufferMerger: threads of one process", false, false, true, false,
                            false},
    RootSystem::Description{"rntuple",
                            "ROOT::RNTupleParallelWriter: threads of one process, one cluster for what is a file "
                            "elsewhere",
                            false, false, true, false, false},
};

}  // namespace

RootSystem::RootSystem(const Description& description, std::shared_ptr<Sampler> sampler)
    : description_(description), sampler_(std::move(sampler)) {}

std::string RootSystem::version() const { return sampler_->version(); }

Outcome RootSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

bool RootSystem::can(const Job& job) const {
  const bool figure = job.figure == Figure::transfer ? description_.transfers
                      : job.figure == Figure::fill   ? description_.fills
                                                     : description_.merges;
  // Handing over the other tree's files is no different, and filling it measures zlib.
  const bool tree = job.tree == Tree::numbers || (job.figure == Figure::merge && description_.takes_files);
  return figure && tree && (job.threads || description_.processes) && job.workers <= description_.most_workers;
}

Finding RootSystem::take(Job job, std::chrono::seconds timeout) {
  job.system = name();
  return finding_in(sampler_->take(to_line(job), timeout));
}

void add_systems(Registry& registry) {
  if (const auto program = find_bench_program("wherry-bench-root", "WHERRY_BENCH_ROOT")) {
    const auto sampler = std::make_shared<Sampler>(std::vector{program->string()});
    for (const auto& one : kDescriptions) registry.systems.push_back(std::make_unique<RootSystem>(one, sampler));
    return;
  }
  for (const auto& one : kDescriptions) {
    registry.missing.push_back({one.name, "its program is not built; make root does it", "root"});
  }
}

}  // namespace wherry::bench::root
