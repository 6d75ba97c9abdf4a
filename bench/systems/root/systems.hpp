// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "bench/harness/programs/sampler.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/system.hpp"
#include "bench/systems/root/job.hpp"

namespace wherry::bench::root {

/// One way to get the files of many workers into one. It answers `wherry bench root` alone.
/// The program that takes the samples is bench/systems/root/program; all systems share it.
class RootSystem final : public System {
 public:
  /// What it can do.
  struct Description {
    const char* name;
    const char* settings;
    bool transfers;
    bool fills;
    bool merges;
    bool processes;    ///< else threads of one process only
    bool takes_files;  ///< that are ready: the Higgs tree
    std::uint32_t most_workers = UINT32_MAX;
    bool merges_slowly = false;  ///< so that one point is enough unless it is named
  };

  RootSystem(const Description& description, std::shared_ptr<Sampler> sampler);

  [[nodiscard]] std::string name() const override { return description_.name; }
  /// ROOT's, once a sample has been taken.
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return "root"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return false; }
  Outcome run(const Sample& sample) override;

  [[nodiscard]] bool can(const Job& job) const;
  [[nodiscard]] bool merges_slowly() const { return description_.merges_slowly; }
  /// Runs a job. Throws std::runtime_error if there is no answer within `timeout`. All processes of the sample have
  /// then ended.
  Finding take(Job job, std::chrono::seconds timeout);

 private:
  const Description& description_;
  std::shared_ptr<Sampler> sampler_;
};

/// Adds them all, or says that they are missing. The program is wherry-bench-root in the folder that WHERRY_BENCH_ROOT
/// names, else beside `wherry`, else in ../lib/wherry/bench.
void add_systems(Registry& registry);

}  // namespace wherry::bench::root
