// SPDX-License-Identifier: Apache-2.0
// Which objects of a file that is handed over begin at nothing with the next: trees and histograms that are attached to
// it. All others are written whole again, and the merger is told which these are, so that it does not add them to what
// they were before.
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
  /// An object is written under this name.
  void note(const TDirectory& file, const TDirectory& mother, const TObject& object, const char* name);
  /// Writes what the merger is told into the file, if there is anything to tell that it does not say yet.
  void write(TDirectory& file);
  /// The next file begins: what is attached, can begin at nothing and was written into this one, does. ROOT does it for
  /// trees.
  void begin_next(const TDirectory& file);

 private:
  void reset_in(const TDirectory& directory);

  std::set<std::string> paths_;
  std::map<const TObject*, std::string> attached_;  // and their names: another may lie where one has been
  bool written_ = true;
};

}  // namespace wherry::root
