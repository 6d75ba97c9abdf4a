// SPDX-License-Identifier: Apache-2.0
// What `wherry bench file` asks of its programs, and what it is told: one line of JSON each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/systems/file/chosen_ways.hpp"

namespace wherry::bench::file {

/// One run of a program's processes over their files, each its own: FOLDER/PREFIX-0, -1 ...
struct Job {
  std::string files{};  ///< FOLDER/PREFIX
  bool writes = false;
  bool random = false;          ///< each unit once, in an order of its own; else one after the other
  bool used = false;            ///< each byte is summed up once it is read, or stored before it is written
  bool synced = false;          ///< a pass ends with fsync
  std::uint64_t unit = 0;       ///< bytes of one call; divides `bytes`
  std::uint64_t bytes = 0;      ///< of one file
  std::uint32_t processes = 1;  ///< each a new one
  bool threads = false;         ///< they are threads of one process
  std::uint32_t warm_ups = 0;   ///< passes before the clock starts
  double seconds = 0;           ///< passes follow each other for so long; 0: one pass
  std::uint64_t salt = 0;       ///< of what stands in the files (bench/systems/file/content.hpp)
  /// One pass without a clock, in which each unit read is compared, or each unit written is what belongs there.
  bool check = false;
};

/// What it came to.
struct Finding {
  double seconds = 0;              ///< from the common start to the end of the last process; 0 of a check
  double cpu_seconds = 0;          ///< of all its processes in that time, and of a server
  double reaped_cpu_seconds = 0;   ///< of all processes that the program has reaped meanwhile
  std::uint64_t useful_bytes = 0;  ///< read or written, all processes together
  std::vector<ChosenWay> ways{};   ///< that the first process chose, as the path `auto` does
};

/// One line each way. Reading throws std::runtime_error when something is missing or makes no sense.
std::string to_line(const Job& job);
std::string to_line(const Finding& finding);
Job job_in(const std::string& line);
Finding finding_in(const std::string& line);

}  // namespace wherry::bench::file
