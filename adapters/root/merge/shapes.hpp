// SPDX-License-Identifier: Apache-2.0
// The agreement between outputs that will be joined: what is a tree everywhere, and with which branches. Without it
// each would take its own first file for right, and what does not fit would be found when no worker is left to be
// refused.
#pragma once

#include <TMemFile.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "adapters/root/merge/read/source.hpp"

class TTree;

namespace wherry::merge {

/// The shape of something in a file; what its kind does not have stays empty.
struct Shape {
  std::string path;
  Kind kind = Kind::kept;
  TTree* tree = nullptr;
  TClass* type = nullptr;
  std::string fields = {};   ///< of an RNTuple
  std::string members = {};  ///< of a class
};

/// An output has what it has committed; what it has only begun with is given up if that turns out to be wrong. Threads:
/// any.
class Shapes {
 public:
  Shapes();
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;
  ~Shapes();

  /// Stands for an output here; never looked into.
  using Output = const void*;

  /// Empty if these fit to what is known, and known from here on; else what does not fit.
  std::string agree(Output output, const std::vector<Shape>& shapes);
  /// What it has agreed to is in the output.
  void keep(Output output);
  /// What it has agreed to since the last keep() is not in the output.
  void give_up(Output output);

 private:
  struct Known {
    Shape shape;                     // a tree has no entries, and belongs to the file
    std::set<Output> begun_by = {};  // empty: it is in an output
  };
  [[nodiscard]] std::string objection(const Shape& shape) const;

  std::mutex mutex_;
  TMemFile file_;  // of the trees, which without one cannot be compared
  std::map<std::string, Known> known_;
};

}  // namespace wherry::merge
