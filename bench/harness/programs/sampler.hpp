// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/programs/program.hpp"

namespace wherry::bench {

/// A program that takes samples of a kind of its own (bench/harness/programs/jobs.hpp is its other side). It runs from
/// the first sample on, and is started anew after a sample that failed.
class Sampler {
 public:
  explicit Sampler(std::vector<std::string> command) : command_(std::move(command)) {}

  /// Returns the program's answer for the job. Throws std::runtime_error with the reason if there is none within
  /// `timeout`. All processes of the sample have then ended.
  std::string take(const std::string& job, std::chrono::seconds timeout);
  /// What the program says of itself, once it has run.
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  std::vector<std::string> command_;
  std::unique_ptr<Program> program_;
  std::string version_;
};

}  // namespace wherry::bench
