// SPDX-License-Identifier: Apache-2.0
// Which placement each sample was taken in.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/options.hpp"
#include "bench/harness/placement.hpp"
#include "bench/harness/placement_probe.hpp"

namespace wherry::bench {

/// The placements of a run, for the report.
struct PlacementSummary {
  std::vector<int> cores{};        ///< the two that were probed
  std::string not_probed{};        ///< why there are none
  std::vector<Placement> found{};  ///< first the one that counts
  std::size_t retaken = 0;         ///< samples taken again because they were taken in another placement
  std::size_t elsewhere = 0;       ///< samples of another placement that count, as the machine did not return in time
};

/// The two cores that a run's sender and receiver are kept on. Empty: there are no two, and `not_probed` says why.
PlacementSummary cores_to_probe(const Options& options);

/// "cores 0 and 1: 112 ns for a cache line to and fro, 51.2 GB/s through a small buffer (83 % of 412 probes); ..."
std::string text_of(const PlacementSummary& summary);

/// Probes between samples, and knows afterwards which of them were taken in the placement of the majority.
class PlacementWatch {
 public:
  /// The probes around one sample.
  struct Around {
    std::size_t before = kNone;
    std::size_t after = kNone;
  };

  /// Without a prober it knows nothing, and every sample counts. `pause` is that between two probes while it waits;
  /// hosts move virtual cores every few seconds.
  explicit PlacementWatch(Prober prober, std::chrono::milliseconds pause = std::chrono::milliseconds{50})
      : prober_(std::move(prober)), pause_(pause) {}

  /// The last probe if it was made a moment ago, else a new one.
  std::size_t before();
  /// A new probe.
  std::size_t after();

  /// Whether the cores were placed as in most probes so far, both before and after. A look that came to nothing does
  /// not count against a sample.
  [[nodiscard]] bool counts(const Around& around);
  /// Probes until the cores are placed as in most probes so far; false if they are not by `until_ns` of the monotonic
  /// clock. These probes are not counted: however long it waits, the majority stays what it was.
  bool await_majority(std::uint64_t until_ns);
  /// Later probes are compared with the placements found so far and change them no more.
  void freeze();

  /// Largest first.
  [[nodiscard]] std::vector<Placement> found();

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  bool in_majority(std::size_t probe);
  const Placements& placements();
  [[nodiscard]] std::optional<Probe> look() const { return prober_ ? prober_() : std::nullopt; }
  [[nodiscard]] bool is_fresh() const;

  Prober prober_;
  std::chrono::milliseconds pause_;
  std::vector<Probe> probes_{};
  Placements placements_{};
  bool frozen_ = false;
  std::size_t last_ = kNone;
  std::uint64_t last_at_ = 0;
};

}  // namespace wherry::bench
