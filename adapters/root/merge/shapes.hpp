// SPDX-License-Identifier: Apache-2.0
// The agreement between outputs that will be joined: the kind of each object, and the branches of each tree. Without
// it, each output would accept whatever fits its own first file. Differences would be found only at the join, when no
// worker is left whose file could be refused.
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

/// The shape of one object in a file. Members that do not apply to its kind are empty.
struct Shape {
  std::string path;
  Kind kind = Kind::kept;
  TTree* tree = nullptr;
  TClass* type = nullptr;
  std::string fields = {};   ///< only for an RNTuple
  std::string members = {};  ///< only for a class
};

/// The shapes that all outputs have agreed to. A shape becomes permanent when an output commits it; an output gives it
/// up if its commit fails. Thread-safe.
class Shapes {
 public:
  Shapes();
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;
  ~Shapes();

  /// Identifies an output; never dereferenced.
  using Output = const void*;

  /// Adds the shapes if they fit the known ones, and returns an empty string; else returns what does not fit.
  std::string agree(Output output, const std::vector<Shape>& shapes);
  /// Makes the shapes permanent that the output has agreed to: they are in the output.
  void keep(Output output);
  /// Forgets the shapes that only this output has agreed to since its last keep().
  void give_up(Output output);

 private:
  struct Known {
    Shape shape;                     // its tree has no entries, and is owned by file_
    std::set<Output> begun_by = {};  // the outputs that have agreed to it; empty: it is permanent
  };
  [[nodiscard]] std::string objection(const Shape& shape) const;

  std::mutex mutex_;
  TMemFile file_;  // contains the trees: trees without a file cannot be compared
  std::map<std::string, Known> known_;
};

}  // namespace wherry::merge
