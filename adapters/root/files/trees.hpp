// SPDX-License-Identifier: Apache-2.0
// The trees of a file. Only virtual functions of TTree are called: programs that have none need not load its library.
#pragma once

#include <TDirectory.h>
#include <TList.h>
#include <TObject.h>
#include <TTree.h>

#include <string>

namespace wherry::root {

/// Visits the trees in memory, in subdirectories too.
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

/// Whether no object of another kind was written into it.
bool holds_only_trees(const TDirectory& directory);

/// Trees with entries that are not in the file, and how many; empty if there are none.
std::string unwritten_trees(const TDirectory& file);

}  // namespace wherry::root
