// SPDX-License-Identifier: Apache-2.0
// Finds the numbers in a tree's header that differ between the files of one writer. The rest of the header is equal,
// and reading it is most of ROOT's work for a small file. To find the numbers, ROOT reads a tree through a buffer that
// records where each number comes from and where it is stored.
#pragma once

#include <TTree.h>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

class TClass;
class TFile;

namespace wherry::merge {

/// The numbers of one tree, with their places in the header that it was read from: entries, sizes, places of baskets,
/// ranges of counters.
class TreeNumbers {
 public:
  /// The header of a tree in a file, decompressed.
  struct Header {
    TFile& file;
    TClass& type;
    std::size_t key_bytes;  ///< of its key
    std::span<const std::byte> bytes;
  };

  /// Reads a tree from its header. Empty if the place of one of the numbers in the header could not be determined.
  static std::optional<TreeNumbers> read(const Header& header);

  /// Returns the bytes of the header.
  [[nodiscard]] std::size_t size() const { return header_.size(); }
  /// Returns whether another header differs only in these numbers.
  [[nodiscard]] bool fits(std::span<const std::byte> header) const;
  /// Stores the numbers of a header that fits in the tree.
  void set(std::span<const std::byte> header) const;

  std::unique_ptr<TTree> tree;

 private:
  struct Number {
    void* address = nullptr;  // in the tree
    std::size_t bytes = 0;    // 4 or 8
    std::size_t at = 0;       // in the header
  };
  class Collector;
  class Onlooker;

  std::vector<std::byte> header_;
  std::vector<Number> numbers_;  // in the order of the header
};

}  // namespace wherry::merge
