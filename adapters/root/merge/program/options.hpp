// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace wherry::merge {

struct ProgramOptions {
  std::string listen;
  std::string output;
  bool by_name = false;  ///< output is a directory, in which each name that workers use is a file
  bool force = false;
  std::size_t batch = 256;
  std::chrono::milliseconds batch_time{50};
  std::size_t pool = std::size_t{512} << 20;
  std::size_t max_file = std::size_t{1} << 30;
  int compression = -1;
  unsigned threads = 1;
  std::size_t file_time = 300;  ///< seconds; longer takes only a file over which ROOT goes round for ever
  unsigned shards = 1;          ///< threads that write an output
  bool durable = false;
  bool compact = false;
  std::size_t workers = 0;  ///< end when so many have come and gone; 0: when all have that came
  std::string json;
  bool quiet = false;
};

/// Empty if there is nothing yet, or an output to be gone on with, or leave to replace what is there; else what is in
/// the way.
std::string objection_to(const ProgramOptions& options, const std::string& output);

}  // namespace wherry::merge
