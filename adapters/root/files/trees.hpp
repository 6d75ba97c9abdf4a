// SPDX-License-Identifier: Apache-2.0
// Finds the trees of a file. Calls only virtual functions of TTree, so that programs without trees need not load its
// library.
#pragma once

#include <TDirectory.h>
#include <TList.h>
#include <TObject.h>
#include <TTree.h>

#include <string>

namespace wherry::root {

/// Calls `act` for each tree in memory, also in subdirectories.
template <typename Act>
void for_each_tree(const TDirectory& directory, const Act& act) {
  for (TObject* object : *directory.GetList()) {
    if (const auto* const inner = dynamic_cast<TDirectory*>(object)) {
      for_each_tree(*inner, act);
    } else if (object->InheritsFrom("TTree")) {
      act(*static_cast<TTree*>(object));
    }
  }
}

/// Whether only trees and directories were written into the directory.
bool holds_only_trees(const TDirectory& directory);

/// Describes the trees that have entries and were never written: names and numbers of entries. Empty if there are none.
std::string unwritten_trees(const TDirectory& file);

}  // namespace wherry::root
