// SPDX-License-Identifier: Apache-2.0
// The files of one writer mostly have the same trees, and differ in a few numbers and in their baskets. A file that
// ROOT has read is kept: another that is equal to it, byte for byte, in all that ROOT would read but for those numbers,
// need not be read: the one that is there becomes it. Whatever else a file is, ROOT reads it.
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

/// Whether the output takes a source as it is; says in it how its trees get there.
using Accepts = std::function<bool(Source&)>;

class KnownShape {
 public:
  /// Takes a source that has been appended to the output if its file has only trees, at the top, of which baskets are
  /// copied; else leaves it. Null then.
  static std::shared_ptr<KnownShape> learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes,
                                           const Accepts& accepts);

  /// The headers of its trees if the file is of this shape, else nothing. They are copies: the worker may write
  /// there again. From any thread.
  [[nodiscard]] std::vector<std::vector<std::byte>> headers_if_like(std::span<const std::byte> bytes) const;
  /// Returns what ROOT would have read from the file. Valid until the next call, or the end of the bytes.
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

/// The shapes of an output's files.
class KnownShapes {
 public:
  /// A file that is of one of them, or of none.
  struct Match {
    std::shared_ptr<KnownShape> shape;
    std::vector<std::vector<std::byte>> headers;
  };

  /// From several threads at once, but not while anything else is called.
  [[nodiscard]] Match find(std::span<const std::byte> bytes) const;
  void note(const Match& match);
  /// Perhaps takes a source that has been appended: learning costs as much as reading.
  void learn(std::unique_ptr<Source>& source, std::span<const std::byte> bytes, const Accepts& accepts);

 private:
  std::vector<std::shared_ptr<KnownShape>> shapes_;  // the one used last first
  std::size_t hits_ = 0;
  std::size_t attempts_ = 0;
};

}  // namespace wherry::merge
