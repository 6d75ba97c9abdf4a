// SPDX-License-Identifier: Apache-2.0
// Histograms, and whatever else ROOT adds up, as an output has them.
#pragma once

#include <TObject.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/root/merge/source.hpp"

class TClass;
class TDirectory;

namespace wherry::merge {

class OutputDirectories;

/// One thread. Of one name there is one object, of one class.
class Sums {
 public:
  explicit Sums(OutputDirectories& directories) : directories_(directories) {}

  /// Null if there is none of this name.
  TClass* class_of(const Place& place);
  /// What is the first of its name is taken, the others have to stay until `merge`. Its directory exists.
  void add(SourceObject& from);
  /// Adds up what was added. Returns which could not be, empty if all could.
  std::string merge();
  /// Writes what has changed.
  void write();

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

  OutputDirectories& directories_;
  std::map<std::string, Sum> sums_;  // by path
};

}  // namespace wherry::merge
