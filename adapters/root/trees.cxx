// SPDX-License-Identifier: Apache-2.0
#include "trees.hpp"

namespace wherry::root {

std::string unwritten_trees(const TDirectory& file) {
  std::string names;
  for_each_tree(file, [&](TTree& tree) {
    if (tree.GetEntries() == 0 || tree.GetDirectory()->GetListOfKeys()->FindObject(tree.GetName()) != nullptr) return;
    names += (names.empty() ? "" : ", ") + std::to_string(tree.GetEntries()) + " entries of " + tree.GetName();
  });
  return names;
}

}  // namespace wherry::root
