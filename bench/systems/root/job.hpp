// SPDX-License-Identifier: Apache-2.0
// What `wherry bench root` asks of its program, and what it is told: one line of JSON each.
#pragma once

#include <cstdint>
#include <string>

namespace wherry::bench::root {

enum class Figure : std::uint8_t {
  transfer,  ///< workers hand over files that are ready; the server reads each byte once
  fill,      ///< workers fill and write trees; the server reads each byte once
  merge,     ///< until one output file is closed
};

enum class Tree : std::uint8_t {
  numbers,  ///< generated: one branch of 1024 doubles, not compressed; workers fill it
  higgs,    ///< ROOT's own Higgs_data.root: 29 branches, zlib; workers hand over files that are ready
};

/// One sample.
struct Job {
  Figure figure = Figure::transfer;
  std::string system{};  ///< as in tables
  Tree tree = Tree::numbers;
  bool threads = false;  ///< workers are threads of one process, else processes
  std::uint32_t workers = 1;
  std::uint32_t files = 1;  ///< of each worker
  std::uint64_t size = 0;   ///< bytes of one file, at most
};

/// What it came to.
struct Finding {
  double seconds = 0;
  double server_cpu_seconds = 0;
  double worker_cpu_seconds = 0;   ///< of all workers together
  double reaped_cpu_seconds = 0;   ///< of all its processes from their start to their end
  std::uint64_t useful_bytes = 0;  ///< the sizes of all files, each as an ordinary ROOT file
  std::uint64_t wire_bytes = 0;    ///< what was sent for them; 0: nothing is sent
  std::uint64_t memory_bytes = 0;  ///< proportional set size of one worker that holds a full file; 0: not measured
};

/// "transfer", "fill", "merge"
std::string word_of(Figure figure);
/// "numbers", "higgs"
std::string word_of(Tree tree);
/// Throw std::invalid_argument for words that are none.
Figure figure_of(const std::string& word);
Tree tree_of(const std::string& word);

/// One line each way. Reading throws std::runtime_error when something is missing or makes no sense.
std::string to_line(const Job& job);
std::string to_line(const Finding& finding);
Job job_in(const std::string& line);
Finding finding_in(const std::string& line);

}  // namespace wherry::bench::root
