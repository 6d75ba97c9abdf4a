// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/registry.hpp"
#include "bench/harness/system.hpp"
#include "bench/systems/mpi/job.hpp"

namespace wherry::bench::mpi {

/// One MPI over one transport. It answers `wherry bench mpi` alone. The program is bench/systems/mpi/program, built
/// with that MPI's own compiler (scripts/build-peers).
class MpiSystem final : public System {
 public:
  struct Description {
    const char* name;
    const char* settings;
    const char* mpi;                         ///< its folder among the peers
    std::vector<const char*> environment{};  ///< NAME=VALUE
    const char* layout = nullptr;            ///< of `wherry mpirun`; null: the MPI's own launcher
    bool oversubscribed = false;             ///< is for more ranks than cores only
  };

  MpiSystem(const Description& description, std::filesystem::path folder)
      : description_(description), folder_(std::move(folder)) {}

  [[nodiscard]] std::string name() const override { return description_.name; }
  /// The MPI's, once a sample has been taken.
  [[nodiscard]] std::string version() const override { return version_; }
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return "mpi"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return false; }
  Outcome run(const Sample& sample) override;

  /// For `wherry mpirun`; empty: as that has it.
  void set_budget(const std::string& budget) { budget_ = budget; }
  [[nodiscard]] bool can(std::uint32_t ranks) const;
  /// Runs all jobs in one launch. Throws std::runtime_error if there is no answer within `timeout`. All processes of
  /// the launch have then ended.
  Finding take(std::uint32_t ranks, std::span<const Job> jobs, std::chrono::seconds timeout);
  /// What is started.
  [[nodiscard]] std::vector<std::string> command(std::uint32_t ranks) const;

 private:
  const Description& description_;
  std::filesystem::path folder_;
  std::string budget_{};
  std::string version_{};
};

/// Adds them all, or says that they are missing. The programs are where scripts/build-peers puts them.
void add_systems(Registry& registry);

}  // namespace wherry::bench::mpi
