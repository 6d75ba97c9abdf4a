// SPDX-License-Identifier: Apache-2.0
// Which objects of a file that is handed over begin at nothing with the next: trees and histograms that are attached to
// it. All others are written whole again, and the merger is told which these are, so that it does not add them to what
// they were before.
#pragma once

#include <Rtypes.h>
#include <set>
#include <string>

class TDirectory;
class TObject;

namespace wherry::root {

/// Of one file.
class WholeObjects {
 public:
  /// An object is written under this name.
  void note(const TDirectory& file, const TDirectory& mother, const TObject& object, const char* name);
  /// Writes what the merger is told into the file, if there is anything to tell that it does not say yet.
  void write(TDirectory& file);
  /// The next file begins.
  void clear() { paths_.clear(); }

 private:
  std::set<std::string> paths_;
  bool written_ = true;
};

/// Objects attached to this directory and those in it that can begin at nothing, do. ROOT does it for trees.
void reset_attached(const TDirectory& directory);

}  // namespace wherry::root
