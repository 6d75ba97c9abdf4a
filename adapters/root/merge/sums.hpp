// SPDX-License-Identifier: Apache-2.0
// Histograms, and whatever else ROOT adds up, as an output has them.
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

/// One thread. Each name has one object, of one class.
class Sums {
 public:
  explicit Sums(OutputDirectories& directories);

  /// Null if there is none of this name.
  TClass* class_of(const Place& place);
  /// Takes the first object of a name; the others have to stay until `merge`. Its directory exists. A part of
  /// this worker is in it.
  void add(const std::string& worker, SourceObject& from);
  /// The part of a worker, which replaces the one before.
  void replace(const std::string& worker, SourceObject& from);
  Parts& parts() { return parts_; }
  /// Adds up what was added. Returns the paths of those of which something could not be, or of which ROOT has reported
  /// an error.
  std::vector<std::string> merge(const RootErrors& errors);
  /// Writes what has changed. The parts only as long as more may come.
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
