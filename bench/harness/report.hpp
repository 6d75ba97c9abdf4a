// SPDX-License-Identifier: Apache-2.0
// What every benchmark prints: a table for people and, with --json, one file that programs read:
// {"environment": {...}, "rows": [{"bench", "system", "version", "mode", "senders", "size", "metric", "median", "mad",
// "n"}]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wherry::bench {

/// One figure: the median of some samples.
struct Row {
  std::string bench{};    ///< the question that was asked
  std::string system{};   ///< what was measured; begins with "limit:" where it is a limit of the machine
  std::string version{};  ///< the system's version; empty: Wherry's own
  std::string mode{};     ///< "handover", or "touched": the payload was written before and read afterwards
  std::uint32_t senders = 1;
  std::uint64_t size = 0;  ///< bytes of one message
  std::string metric{};    ///< "GB/s", "msgs/s", "ns_p50", ...
  double median = 0;
  double mad = 0;     ///< median absolute deviation
  std::size_t n = 0;  ///< samples
};

/// Sets median, mad and n. `samples` must not be empty.
void summarise(Row& row, std::vector<double> samples);

/// Writes the rows with a description of this machine; "-" is standard output. `run` tells more about the environment.
/// Throws std::system_error.
void write_json(const std::string& path, const std::vector<Row>& rows, const nlohmann::json& run);
void write_json(const std::string& path, const std::vector<Row>& rows);

/// "64 B", "4 KiB", "1 MiB": exact, with the largest unit that divides it.
std::string size_text(std::uint64_t bytes);

}  // namespace wherry::bench
