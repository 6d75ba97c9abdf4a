// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/systems/root/job.hpp"

class TFile;
class TTree;

namespace wherry::bench::root {

constexpr const char* kTreeName = "tree";

/// The compression setting of files with that tree.
int compression_of(Tree tree);

/// An ordinary ROOT file in memory, with `entries` entries.
struct Image {
  std::vector<char> bytes;
  std::uint64_t entries = 0;
  std::uint64_t sum = 0;  ///< as bench/harness/touch.hpp adds it up
};

/// The largest file of at most that size. Throws std::runtime_error if none is so small.
Image make_image(Tree tree, std::uint64_t size);

/// Fills the generated tree, as a program would that has just computed each entry.
class Filler {
 public:
  static constexpr std::size_t kNumbers = 1024;
  /// The tree belongs to the file, and has ROOT's default settings.
  explicit Filler(TFile& file);
  void fill(std::uint64_t entries);

 private:
  TTree* tree_;
  std::array<double, kNumbers> numbers_{};
  std::uint64_t next_ = 0;
};

/// Writes the next entry's numbers.
void compute(std::array<double, Filler::kNumbers>& numbers, std::uint64_t entry);

}  // namespace wherry::bench::root
