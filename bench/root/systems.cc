// SPDX-License-Identifier: Apache-2.0
#include "bench/root/systems.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "bench/peers/foreign/program.hpp"

namespace wherry::bench::root {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "wherry-bench-root";

/// TMonitor takes no descriptors beyond 1023, and a connection has one below.
constexpr std::uint32_t kMostInMonitor = 1000;

// The names are those of bench/root/program/systems.cc.
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

std::vector<fs::path> places() {
  if (const char* named = std::getenv("WHERRY_BENCH_ROOT"); named != nullptr && *named != '\0') return {named};
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  return {here, here.parent_path() / "lib" / "wherry" / "bench"};
}

}  // namespace

class Bench {
 public:
  explicit Bench(fs::path program) : path_(std::move(program)) {}

  Finding take(const Job& job, Program::Clock::time_point deadline) {
    try {
      if (!program_) program_ = std::make_unique<Program>(std::vector{path_.string()}, deadline);
      version_ = program_->version();
      program_->tell("sample " + to_line(job));
      return finding_in(program_->hear("done", deadline));
    } catch (...) {
      program_.reset();  // With whatever it has started.
      throw;
    }
  }
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  fs::path path_;
  std::unique_ptr<Program> program_;
  std::string version_;
};

RootSystem::RootSystem(const Description& description, std::shared_ptr<Bench> bench)
    : description_(description), bench_(std::move(bench)) {}

std::string RootSystem::version() const { return bench_->version(); }

Outcome RootSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

bool RootSystem::can(const Job& job) const {
  const bool figure = job.figure == Figure::transfer ? description_.transfers
                      : job.figure == Figure::fill   ? description_.fills
                                                     : description_.merges;
  // Handing over the other tree's files is no different, and filling it measures zlib.
  const bool tree = job.tree == Tree::numbers || (job.figure == Figure::merge && description_.takes_files);
  return figure && tree && (job.threads || description_.processes) && job.workers <= description_.most_workers;
}

Finding RootSystem::take(Job job, std::chrono::seconds patience) {
  job.system = name();
  return bench_->take(job, Program::Clock::now() + patience);
}

void add_systems(Registry& registry) {
  for (const fs::path& place : places()) {
    std::error_code ignored;
    if (!fs::exists(place / kProgram, ignored)) continue;
    const auto bench = std::make_shared<Bench>(place / kProgram);
    for (const auto& one : kDescriptions) registry.systems.push_back(std::make_unique<RootSystem>(one, bench));
    return;
  }
  for (const auto& one : kDescriptions) {
    registry.missing.push_back({one.name, "its program is not built; make root does it", "root"});
  }
}

}  // namespace wherry::bench::root
