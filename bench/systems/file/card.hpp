// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace wherry::bench::file {

/// The card of one job, `wherry card`. The first file that is opened would start one, but below the program that a
/// Sampler ends with all that it has started: killed, a card leaves its cache behind.
class Card {
 public:
  /// `cache`: its size, empty for the default. Returns when it serves. Throws std::runtime_error with what it said if
  /// it could not.
  Card(const std::filesystem::path& wherry, const std::string& job, const std::string& cache = {});
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  /// Ends it. If this process is killed, it ends by itself soon after its last client.
  ~Card();

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace wherry::bench::file
