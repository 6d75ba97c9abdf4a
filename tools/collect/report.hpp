// SPDX-License-Identifier: Apache-2.0
//
// The report that a collector prints when it ends.
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

/// Counts of stored paths and bytes.
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
  complete,     ///< all shipped paths are stored
  refused,      ///< the session was finished, but some paths could not be shipped or stored
  died,         ///< the shipper ended before its goodbye
  broken,       ///< the shipper broke the protocol
  interrupted,  ///< the collector was stopped by a signal
};
inline constexpr std::array kSessionEnds{SessionEnd::complete, SessionEnd::refused, SessionEnd::died,
                                         SessionEnd::broken, SessionEnd::interrupted};
const char* name_of(SessionEnd end);

/// The outcome of paths that shippers began to read, or could not. Each path is counted once.
struct PathCounts {
  std::uint64_t stored = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;  ///< not readable by the shipper, or not arrived when the session ended

  [[nodiscard]] std::uint64_t all() const { return stored + refused + failed; }
  PathCounts& operator+=(const PathCounts& other);
};

struct ShipperReport {
  std::string label;
  std::string address;
  std::int64_t pid = 0;         ///< from the operating system; 0: not vouched for
  std::int64_t stated_pid = 0;  ///< the shipper's own statement; 0: unknown
  std::optional<std::uint32_t> node;
  SessionEnd end = SessionEnd::died;
  Amounts stored;
  std::string incomplete_file;         ///< the file that was being received when the session ended
  std::string error;                   ///< the reason of the end
  std::vector<Failure> failures;       ///< refusals and other failures; the first kKeptFailures
  std::uint64_t failure_count = 0;     ///< the number of all failures
  std::uint64_t refused_paths = 0;     ///< failures of paths that were not stored
  std::uint64_t begun_paths = 0;       ///< paths that the shipper began to send
  bool said_goodbye = false;           ///< the shipper sent its goodbye
  std::uint64_t shipper_failures = 0;  ///< paths that the shipper could not read; known after its goodbye

  static constexpr std::size_t kKeptFailures = 1000;  ///< limits the memory that a shipper can use here
  static constexpr std::size_t kShownFailures = 5;    ///< in to_text()

  void add_failure(Failure failure);
  [[nodiscard]] PathCounts paths() const;
  /// "'label' (pid 12, node 1)".
  [[nodiscard]] std::string name() const;
  /// Returns one line: the shipper, how its session ended, what was stored, and the first kShownFailures failures.
  [[nodiscard]] std::string to_text() const;
};

/// Running totals of all shippers, for the progress line.
struct LiveTotals {
  std::atomic<std::uint64_t> files = 0;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<std::uint64_t> announced_files = 0;
  std::atomic<std::uint64_t> announced_bytes = 0;
};

/// The report of all sessions. Its size is bounded, however long the collector runs.
struct CollectReport {
  std::string listen;
  std::string into;
  bool durable = true;
  double seconds = 0;                   ///< from the start of the first session to the end of the last
  bool interrupted = false;             ///< it was stopped before all expected shippers had finished
  std::vector<ShipperReport> shippers;  ///< the first kKeptComplete complete ones, and kKeptIncomplete others
  std::uint64_t shippers_left_out = 0;  ///< the number of further sessions
  std::array<std::uint64_t, kSessionEnds.size()> ended{};  ///< the number of sessions with each end of kSessionEnds
  Amounts stored;                                          ///< of all
  PathCounts paths;                                        ///< of all
  std::vector<Failure> failures;                           ///< failures that concern no single shipper

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
