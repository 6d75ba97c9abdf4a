// SPDX-License-Identifier: Apache-2.0
// The sums in an output: histograms, and other objects that ROOT adds up.
#pragma once

#include <TObject.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/root/merge/parts.hpp"
#include "adapters/root/merge/read/root_errors.hpp"
#include "adapters/root/merge/read/source.hpp"

class TClass;
class TDirectory;

namespace wherry::merge {

class OutputDirectories;

/// One thread. Each place has one object, of one class.
class Sums {
 public:
  explicit Sums(OutputDirectories& directories);

  /// Returns the class of the object at this place; null if there is none.
  TClass* class_of(const Place& place);
  /// Adds an object. Takes ownership of the first object at a place; others must exist until `merge`. The directory
  /// must exist. The object includes a part that the worker wrote before, which is dropped.
  void add(const std::string& worker, SourceObject& from);
  /// Takes ownership of the object, as the worker's part of the sum. It replaces the worker's previous part.
  void replace(const std::string& worker, SourceObject& from);
  Parts& parts() { return parts_; }
  /// Computes the sums. Returns the paths of those for which ROOT has reported an error, or to which an object could
  /// not be added.
  std::vector<std::string> merge(const RootErrors& errors);
  /// Writes the sums that have changed, and the parts, unless no more files can come.
  void write(bool more_may_come);

 private:
  struct Sum {
    std::unique_ptr<TObject> object;
    TClass* type = nullptr;
    TDirectory* directory = nullptr;
    std::string name;  // of its key
    std::vector<TObject*> inputs;
    bool changed = false;
  };
  Sum* find(const Place& place);
  bool merge_parts(const std::string& path, Sum& sum);

  OutputDirectories& directories_;
  std::map<std::string, Sum> sums_;  // by path
  Parts parts_;
};

}  // namespace wherry::merge
