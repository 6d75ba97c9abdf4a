// SPDX-License-Identifier: Apache-2.0
// Tracks which objects of a file are reset after it was handed over: attached trees and histograms. All other objects
// are written whole again in later files. The merger gets their names, so that it replaces them instead of adding.
#pragma once

#include <Rtypes.h>
#include <map>
#include <set>
#include <string>

class TDirectory;
class TObject;

namespace wherry::root {

/// The objects of one file.
class WholeObjects {
 public:
  /// To be called when an object is written under this name.
  void note(const TDirectory& file, const TDirectory& mother, const TObject& object, const char* name);
  /// Writes the names for the merger into the file (kRootWholeObjects), unless the file already has the current ones.
  void write(TDirectory& file);
  /// Begins the next file: resets attached objects that were written into this one and have Reset(). ROOT resets trees.
  void begin_next(const TDirectory& file);

 private:
  void reset_in(const TDirectory& directory);

  std::set<std::string> paths_;                     // objects that are written whole
  std::map<const TObject*, std::string> attached_;  // objects to reset; the name detects another object at the address
  bool written_ = true;                             // the file contains the current paths_
};

}  // namespace wherry::root
