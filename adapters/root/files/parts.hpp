// SPDX-License-Identifier: Apache-2.0
// Hands over a file that becomes too large for the server in parts: its trees, as often as necessary, from inside
// TTree::Fill. The only call that ROOT makes to a file there is TFile::WriteStreamerInfo, after a tree has saved itself
// (SetAutoSave). So all trees are told to save themselves with their next entry.
#pragma once

#include <cstddef>
#include <vector>

#include <Rtypes.h>

class TDirectory;
class TTree;

namespace wherry::root {

class Parts {
 public:
  /// Tells the trees of a file of `bytes` to save themselves with their next entry. Does nothing unless trees fill at
  /// least 7/8 of the file and no other object was written into it: an object that is handed over now and written again
  /// later would be counted twice.
  void ask(const TDirectory& file, std::size_t bytes);
  /// Whether trees were told to save themselves, and restore() was not called since.
  [[nodiscard]] bool asked() const { return !habits_.empty(); }
  /// Writes the trees with all their entries. Nothing else is written: histograms stay in memory until the program
  /// writes them.
  static void write_trees(const TDirectory& file);
  /// Gives the trees the settings that they had before ask().
  void restore(const TDirectory& file);

 private:
  struct Habit {
    TTree* tree = nullptr;
    Long64_t auto_save = 0;
    Long64_t auto_flush = 0;
    bool only_clusters = false;
  };
  std::vector<Habit> habits_;
};

}  // namespace wherry::root
