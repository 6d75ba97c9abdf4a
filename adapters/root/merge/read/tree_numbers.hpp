// SPDX-License-Identifier: Apache-2.0
// A tree's header in a file is nearly the same in the next file of its writer: only some numbers differ. Reading all of
// it is most of what ROOT does for a small file. ROOT itself shows where they are: a tree is read through
// a buffer that notes where each number goes.
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

/// Entries, sizes, places of baskets, ranges of counters: of one tree, and where they are in the header it was read
/// from.
class TreeNumbers {
 public:
  /// A header as it is in a file, decompressed.
  struct Header {
    TFile& file;
    TClass& type;
    std::size_t key_bytes;  ///< of its key
    std::span<const std::byte> bytes;
  };

  /// Reads another such tree. Empty if it is none, or if one of the numbers was not seen to be read from there.
  static std::optional<TreeNumbers> read(const Header& header);

  /// Bytes of the header.
  [[nodiscard]] std::size_t size() const { return header_.size(); }
  /// Whether ROOT would read the same tree from it, but for these numbers.
  [[nodiscard]] bool fits(std::span<const std::byte> header) const;
  /// Gives the tree those of a header that fits.
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
  std::vector<Number> numbers_;  // as they lie in the header
};

}  // namespace wherry::merge
