// SPDX-License-Identifier: Apache-2.0
// The options of wherry-merge.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace wherry::merge {

struct ProgramOptions {
  std::string listen;
  std::string output;
  bool by_name = false;  ///< output is a directory, with one file for each name that workers use
  bool force = false;
  std::size_t batch = 256;
  std::chrono::milliseconds batch_time{50};
  std::size_t pool = std::size_t{512} << 20;
  std::size_t max_file = std::size_t{1} << 30;
  int compression = -1;
  unsigned threads = 1;
  std::size_t file_time = 300;  ///< seconds; only a file that sends ROOT into an endless loop takes longer
  unsigned shards = 1;          ///< threads that write an output
  bool durable = false;
  bool compact = false;
  std::size_t workers = 0;  ///< end when this many workers have come and gone; 0: when all that came have gone
  std::string json;
  bool quiet = false;
};

/// Returns why the output cannot be begun or continued; empty if it can. A file that exists may be replaced only if it
/// has a journal, or with --force.
std::string objection_to(const ProgramOptions& options, const std::string& output);

}  // namespace wherry::merge
