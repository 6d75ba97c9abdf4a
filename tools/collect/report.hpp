// SPDX-License-Identifier: Apache-2.0
//
// The report of a collector at its end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collect/directories.hpp"

namespace wherry::tools {

/// Counts of what was stored, per shipper.
struct Amounts {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;
  std::uint64_t symlinks = 0;
  std::uint64_t bytes = 0;  ///< data moved; holes do not count

  [[nodiscard]] std::uint64_t paths() const { return files + directories + symlinks; }
  Amounts& operator+=(const Amounts& other);
};

/// How a session ended.
enum class SessionEnd {
  complete,     ///< everything that was shipped is stored
  refused,      ///< it went to its end, but not everything could be shipped or stored
  died,         ///< the shipper was gone before its goodbye
  broken,       ///< it did not speak the protocol
  interrupted,  ///< the collector was told to stop
};
inline constexpr std::array kSessionEnds{SessionEnd::complete, SessionEnd::refused, SessionEnd::died,
                                         SessionEnd::broken, SessionEnd::interrupted};
const char* name_of(SessionEnd end);

/// What became of paths that shippers began, or could not begin to, read: each is counted once.
struct PathCounts {
  std::uint64_t stored = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;  ///< could not be read by the shipper, or had not arrived when its session broke off

  [[nodiscard]] std::uint64_t all() const { return stored + refused + failed; }
  PathCounts& operator+=(const PathCounts& other);
};

struct ShipperReport {
  std::string label;
  std::string address;
  std::int64_t pid = 0;         ///< as the operating system says; 0: it does not vouch for the shipper
  std::int64_t stated_pid = 0;  ///< as the shipper says; 0: unknown
  std::optional<std::uint32_t> node;
  SessionEnd end = SessionEnd::died;
  Amounts stored;
  std::string incomplete_file;         ///< what it was in the middle of when it ended
  std::string error;                   ///< why it ended so
  std::vector<Failure> failures;       ///< what was refused or went wrong; the first kKeptFailures of them
  std::uint64_t failure_count = 0;     ///< how many there were
  std::uint64_t refused_paths = 0;     ///< of these, those of which nothing was stored
  std::uint64_t begun_paths = 0;       ///< paths of which the shipper sent the beginning
  bool said_goodbye = false;           ///< the shipper named all it had
  std::uint64_t shipper_failures = 0;  ///< paths that the shipper itself could not read; known after its goodbye

  static constexpr std::size_t kKeptFailures = 1000;  ///< a limit: no shipper can fill this process's memory with them
  static constexpr std::size_t kShownFailures = 5;    ///< in to_text()

  void add_failure(Failure failure);
  [[nodiscard]] PathCounts paths() const;
  /// "'label' (pid 12, node 1)".
  [[nodiscard]] std::string who() const;
  /// One line: the shipper, how it ended, what was stored, and the first kShownFailures of what was refused.
  [[nodiscard]] std::string to_text() const;
};

/// Running totals of all shippers, for the progress line.
struct LiveTotals {
  std::atomic<std::uint64_t> files = 0;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<std::uint64_t> announced_files = 0;
  std::atomic<std::uint64_t> announced_bytes = 0;
};

/// Grows with the shippers up to a bound, however long the collector runs.
struct CollectReport {
  std::string listen;
  std::string into;
  bool durable = true;
  double seconds = 0;                   ///< from the first shipper's coming to the last one's going
  bool interrupted = false;             ///< it was told to stop before all it expected had come
  std::vector<ShipperReport> shippers;  ///< the first kKeptComplete complete ones, and kKeptIncomplete others
  std::uint64_t shippers_left_out = 0;  ///< and how many more there were
  std::array<std::uint64_t, kSessionEnds.size()> ended{};  ///< how many of all ended in each way of kSessionEnds
  Amounts stored;                                          ///< of all
  PathCounts paths;                                        ///< of all
  std::vector<Failure> failures;                           ///< what concerns no single shipper

  static constexpr std::uint64_t kKeptComplete = 1000;
  static constexpr std::uint64_t kKeptIncomplete = 1000;
  static constexpr std::uint64_t kKeptFailures = 10'000;  ///< of all shippers together

  void add(ShipperReport shipper);
  [[nodiscard]] std::uint64_t ended_in(SessionEnd end) const { return ended[static_cast<std::size_t>(end)]; }
  [[nodiscard]] std::uint64_t sessions() const;
  [[nodiscard]] bool complete() const;
  [[nodiscard]] nlohmann::json to_json() const;
  [[nodiscard]] std::string to_text() const;

 private:
  std::uint64_t kept_failures_ = 0;
};

}  // namespace wherry::tools
