// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/programs/sampler.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/system.hpp"
#include "bench/systems/file/job.hpp"

namespace wherry::bench::file {

/// One way to a file. It answers `wherry bench file` alone. The program that takes the samples is
/// bench/systems/file/program.
class FileSystem final : public System {
 public:
  /// What the program is started by.
  enum class Start : std::uint8_t {
    plain,  ///< nothing
    run,    ///< wherry run --files
    api,    ///< nothing; it calls wherry::files
    fuse,   ///< FUSE, which is not permitted everywhere
    mount,  ///< wherry mount, likewise
  };
  struct Description {
    const char* name;
    const char* settings;
    const char* program = "wherry-bench-file";
    Start start = Start::plain;
    const char* path = "";    ///< a word for what starts the program, or for the program
    bool maps = false;        ///< files that are read repeatedly
    std::uint64_t calls = 0;  ///< of a pass, at most; 0: as many as the file has units
  };

  FileSystem(const Description& description, std::filesystem::path program)
      : description_(description), program_(std::move(program)) {}

  [[nodiscard]] std::string name() const override { return description_.name; }
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return "file"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return false; }
  Outcome run(const Sample& sample) override;

  /// What this system does of a job: it may need fewer passes before the clock starts, and be so slow that the file's
  /// begin must do for the whole.
  [[nodiscard]] Job part_of(Job job) const;

  /// Runs a job. The files of all jobs lie in one folder. Throws std::runtime_error if there is no answer within
  /// `timeout`. All processes of the sample have then ended.
  Finding take(const Job& job, std::chrono::seconds timeout);

 private:
  void start_program(const std::filesystem::path& folder);
  [[nodiscard]] std::vector<std::string> command_for(const std::filesystem::path& folder) const;

  const Description& description_;
  std::filesystem::path program_;
  std::optional<Sampler> sampler_;
};

/// NFS is no system: its server needs the whole machine. Returns why, and what to do instead where the kernel has it.
/// @param file_systems  those that the kernel knows, as /proc/filesystems has them
std::string nfs_hindrance(const std::filesystem::path& file_systems);

/// Adds them all, or says that they are missing. The programs are in the folder that WHERRY_BENCH_FILE names, else
/// beside `wherry`, else in ../lib/wherry/bench.
void add_systems(Registry& registry);

}  // namespace wherry::bench::file
