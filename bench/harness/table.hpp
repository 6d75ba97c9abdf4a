// SPDX-License-Identifier: Apache-2.0
// Tables for people: one row per system, one column per size (or number of senders), the best of each column marked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"

namespace wherry::bench {

/// What the columns are; rows that differ in it stand beside each other.
enum class Columns : std::uint8_t { sizes, senders };

struct TableOf {
  std::string title;
  std::string bench;
  std::string mode;
  std::uint32_t senders = 1;  ///< where the columns are sizes
  std::string metric;
  double unit = 1;  ///< figures are divided by it
  bool highest_is_best = true;
  Columns columns = Columns::sizes;
  bool ratios = false;                     ///< add what Wherry's rows are to the best peer and to the limits
  std::string compared{};                  ///< add what this one's row is ...
  std::vector<std::string> compared_to{};  ///< ... to each of these
  std::string reference{};                 ///< add what every other row is to this one's
  bool spread = false;                     ///< add the median absolute deviation, in per cent of the median
};

/// Empty if there is no such figure. Limits come last and are never "best".
std::string table(std::span<const Row> rows, const TableOf& what);

/// "0.0123", "1.23", "12.3", "1234": three digits that matter.
std::string figure(double value);

bool is_limit(const std::string& system);
/// Wherry's own ways: "wherry", "wherry-reserve", ..., and its SCIF: "scif", "scif-poll", ...
bool is_wherry(const std::string& system);

}  // namespace wherry::bench
