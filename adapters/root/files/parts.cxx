// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include <TDirectory.h>
#include <TTree.h>

#include <algorithm>

#include "trees.hpp"

namespace wherry::root {

void Parts::ask(const TDirectory& file, std::size_t bytes) {
  constexpr Long64_t kMost = 8;
  habits_.clear();
  if (!holds_only_trees(file)) return;
  Long64_t baskets = 0;
  for_each_tree(file, [&](TTree& tree) { baskets += tree.GetZipBytes(); });
  // If the trees are less than 7/8 of the file, something else is being written into it, such as an RNTuple. Handing
  // over would split it.
  if (baskets < static_cast<Long64_t>(bytes) / kMost * (kMost - 1)) return;
  for_each_tree(file, [this](TTree& tree) {
    habits_.push_back({.tree = &tree,
                       .auto_save = tree.GetAutoSave(),
                       .auto_flush = tree.GetAutoFlush(),
                       .only_clusters = tree.TestBit(TTree::kOnlyFlushAtCluster)});
    tree.SetAutoSave(1);
    // Without this bit, a tree that saves itself before its first cluster is full enlarges its baskets to hold all of
    // its entries.
    tree.SetBit(TTree::kOnlyFlushAtCluster);
  });
}

void Parts::write_trees(const TDirectory& file) {
  for_each_tree(file, [](TTree& tree) {
    tree.FlushBaskets();
    tree.GetDirectory()->WriteTObject(&tree, nullptr, "overwrite");
  });
}

void Parts::restore(const TDirectory& file) {
  if (!asked()) return;
  // Visits the trees that still exist: the program may have deleted some.
  for_each_tree(file, [this](TTree& tree) {
    const auto habit =
        std::find_if(habits_.begin(), habits_.end(), [&](const Habit& one) { return one.tree == &tree; });
    if (habit == habits_.end()) return;
    tree.SetAutoSave(habit->auto_save);
    // When it saved itself early, the tree took the entries so far as the size of all clusters.
    tree.SetAutoFlush(habit->auto_flush);
    tree.SetBit(TTree::kOnlyFlushAtCluster, habit->only_clusters);
  });
  habits_.clear();
}

}  // namespace wherry::root
