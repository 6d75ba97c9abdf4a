// SPDX-License-Identifier: Apache-2.0
// `wherry bench file`: which points there are, and which figures and tables they come to.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/systems/file/job.hpp"

namespace wherry::bench::file {

/// What a point asks. Reads first, all of them.
enum class Figure : std::uint8_t {
  hit,           ///< read one after the other, what was read before by another process
  first,         ///< the same, in the kernel's cache, but in no other
  cold,          ///< the same, in no cache
  random_read,   ///< 4 KiB each, what was read before
  used_read,     ///< as hit, and each byte is used: in small pieces with one buffer, and by one call
  write,         ///< over what the file has, without fsync
  synced,        ///< the same with fsync at the end of each pass
  random_write,  ///< 4 KiB each, without fsync
  used_synced,   ///< as synced, and each byte is stored before: in small pieces with one buffer, and by one call
};
inline constexpr Figure kFigures[] = {Figure::hit,         Figure::first,        Figure::cold,
                                      Figure::random_read, Figure::used_read,    Figure::write,
                                      Figure::synced,      Figure::random_write, Figure::used_synced};

/// "hit", "first", "cold", "random-read", "used-read", "write", "write-synced", "random-write",
/// "used-write-synced".
std::string word_of(Figure figure);

struct Point {
  Figure figure = Figure::hit;
  std::uint64_t unit = 0;
  std::uint64_t bytes = 0;  ///< of one process's file
  std::uint32_t processes = 1;
  bool threads = false;  ///< of one process, instead of processes
};

/// The mode of its rows.
std::string mode_of(Figure figure, bool threads);

void add_options(CLI::App& command, Options& options);
/// Of these, the one that says where the files are made.
void add_directory_option(CLI::App& command, Options& options);

/// Every size with the first number of processes. Of each figure except random calls, one size with the other numbers
/// of processes. Of hits and writes, one size with the numbers of threads. The bytes of a point are shared out among
/// its processes or threads. Throws std::invalid_argument for sizes that no file can have.
std::vector<Point> points(const Options& options);

/// What a program is asked for at that point, but for the folder of the files.
Job job_of(const Point& point, double seconds);

/// All figures of one point and system.
void append_rows(std::vector<Row>& rows, const std::string& system, const Point& point,
                 std::span<const Finding> findings);

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances);

std::string tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench::file
