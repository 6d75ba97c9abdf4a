// SPDX-License-Identifier: Apache-2.0
// A file that becomes too large for the server is handed over in parts: its trees, as often as necessary, from inside
// TTree::Fill. ROOT gives a file no say there, except that a tree which is to save itself (SetAutoSave) calls
// TFile::WriteStreamerInfo when it has. So all trees are told to save themselves with the next entry.
#pragma once

#include <cstddef>
#include <vector>

#include <Rtypes.h>

class TDirectory;
class TTree;

namespace wherry::root {

class Parts {
 public:
  /// Has the trees of this file save themselves with their next entry, if it is they that have made it `bytes` large,
  /// and it holds nothing else: an object that is handed over now and written again later would be counted twice.
  void ask(const TDirectory& file, std::size_t bytes);
  /// Whether there are trees that were told to, and nothing was handed over since.
  [[nodiscard]] bool asked() const { return !habits_.empty(); }
  /// Writes what there is of the trees. Nothing else: histograms stay, in memory, until the program writes them.
  static void write_trees(const TDirectory& file);
  /// When everything was handed over: the trees save themselves as before.
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
