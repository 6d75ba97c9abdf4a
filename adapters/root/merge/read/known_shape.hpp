// SPDX-License-Identifier: Apache-2.0
// Saves ROOT from reading files that resemble an earlier one. The files of one writer usually have the same trees, and
// differ only in a few numbers and in their baskets. One file that ROOT has read is kept as a shape. If another file
// equals it byte for byte in everything that ROOT would read, except for those numbers, ROOT does not read it. Instead
// the kept file gets the new numbers. ROOT reads all other files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/root/merge/read/source.hpp"
#include "adapters/root/merge/read/tree_numbers.hpp"

namespace wherry::merge {

struct FileParts;

/// Returns whether the output accepts a source, and sets `way` in its trees.
using Accepts = std::function<bool(Source&)>;

class KnownShape {
 public:
  /// Makes a shape of a source that has been appended to the output, and takes ownership of it. The file must have only
  /// trees, in the top directory, whose baskets are copied. Else returns null, and the source stays with the caller.
  static std::shared_ptr<KnownShape> learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes,
                                           const Accepts& accepts);

  /// Returns the headers of the trees if the file has this shape, else nothing. They are copies, because the worker may
  /// change the file's bytes. Thread-safe.
  [[nodiscard]] std::vector<std::vector<std::byte>> headers_if_like(std::span<const std::byte> bytes) const;
  /// Returns the source that ROOT would have read from the file. Valid until the next call, and while the bytes are.
  Source& become(std::span<const std::byte> bytes, const std::vector<std::vector<std::byte>>& headers);

 private:
  struct Tree {
    std::string type;
    std::string name;
    std::string title;
    TreeNumbers numbers;
  };

  std::unique_ptr<Source> source_;
  std::int32_t compression_ = 0;
  std::vector<std::byte> streamer_infos_;
  std::vector<Tree> trees_;
};

/// The shapes of the files of one output.
class KnownShapes {
 public:
  /// The shape of a file, with the headers of its trees. Null: it has none of the known shapes.
  struct Match {
    std::shared_ptr<KnownShape> shape;
    std::vector<std::vector<std::byte>> headers;
  };

  /// May be called by several threads at once, but not concurrently with other functions.
  [[nodiscard]] Match find(std::span<const std::byte> bytes) const;
  /// Counts the use of a match, and moves its shape to the front.
  void note(const Match& match);
  /// May take ownership of a source that has been appended, as a new shape. Learning costs as much as reading, so the
  /// number of attempts is limited by the number of matches.
  void learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes, const Accepts& accepts);

 private:
  std::vector<std::shared_ptr<KnownShape>> shapes_;  // most recently used first
  std::size_t hits_ = 0;
  std::size_t attempts_ = 0;
};

}  // namespace wherry::merge
