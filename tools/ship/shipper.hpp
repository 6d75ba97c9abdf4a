// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collect/directories.hpp"
#include "common/progress.hpp"
#include "ship/options.hpp"
#include "ship/shipment.hpp"

namespace wherry::tools {

/// The report of a shipper at its end.
struct ShipReport {
  std::string to;
  std::string label;
  std::uint64_t files = 0;  ///< sent, as are the next three
  std::uint64_t directories = 0;
  std::uint64_t symlinks = 0;
  std::uint64_t bytes = 0;     ///< data moved; holes do not count
  std::uint64_t paths = 0;     ///< directories, symbolic links and files that were begun
  std::uint64_t answered = 0;  ///< paths, from the first on, that the collector has stored or refused
  double seconds = 0;
  std::vector<Failure> failures;  ///< paths that could not be read, or were refused
  std::string error;              ///< why the session ended early; empty: it did not

  [[nodiscard]] bool complete() const { return failures.empty() && error.empty(); }
  [[nodiscard]] nlohmann::json to_json() const;
  [[nodiscard]] std::string to_text() const;
};

/// Connects to a collector, ships all paths of the options, and waits until the collector has confirmed them.
class Shipper {
 public:
  explicit Shipper(ShipOptions options);

  ShipReport run();

 private:
  void ship_all(Shipment& shipment);
  void fail(std::string path, std::string error, const char* what);
  [[nodiscard]] std::string progress_text(std::uint64_t total_bytes) const;

  ShipOptions options_;
  std::vector<std::string> listed_;
  ShipReport report_;
  Shipment::Counts counts_;
  std::uint64_t started_ns_ = 0;
  std::uint64_t unreadable_ = 0;
  std::mutex mutex_;  // guards the report's failures
  Progress* progress_ = nullptr;
};

}  // namespace wherry::tools
