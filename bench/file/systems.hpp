// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "bench/file/card.hpp"
#include "bench/file/job.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/system.hpp"
#include "bench/peers/foreign/sampler.hpp"

namespace wherry::bench::file {

/// One way to a file. It answers `wherry bench file` alone. The program that takes the samples is bench/file/program.
class FileSystem final : public System {
 public:
  struct Description {
    const char* name;
    const char* settings;
    const char* program = "wherry-bench-file";
    const char* path = nullptr;  ///< WHERRY_FILE_PATH of `wherry run --files`; null: without it
    bool caches = false;         ///< what it has read itself
  };

  FileSystem(const Description& description, std::filesystem::path program)
      : description_(description), program_(std::move(program)) {}

  [[nodiscard]] std::string name() const override { return description_.name; }
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return "file"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return false; }
  Outcome run(const Sample& sample) override;

  /// The files of all jobs lie in one folder. Throws std::runtime_error when there is no answer within `patience`;
  /// nothing of the sample is left over then.
  Finding take(Job job, std::chrono::seconds patience);

 private:
  void start(const std::filesystem::path& folder);

  const Description& description_;
  std::filesystem::path program_;
  std::optional<Card> card_;  // Ends after its client.
  std::optional<Sampler> sampler_;
};

/// Adds them all, or says that they are missing. The programs are in the folder that WHERRY_BENCH_FILE names, else
/// beside `wherry`, else in ../lib/wherry/bench.
void add_systems(Registry& registry);

}  // namespace wherry::bench::file
