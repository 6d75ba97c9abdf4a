// SPDX-License-Identifier: Apache-2.0
#include "trees.hpp"

#include <TClass.h>
#include <TKey.h>

namespace wherry::root {

bool holds_only_trees(const TDirectory& directory) {
  for (TObject* object : *directory.GetListOfKeys()) {
    const TClass* const type = TClass::GetClass(static_cast<TKey*>(object)->GetClassName());
    if (type == nullptr || !(type->InheritsFrom("TTree") || type->InheritsFrom(TDirectory::Class()))) return false;
  }
  for (TObject* object : *directory.GetList()) {
    const auto* const inner = dynamic_cast<TDirectory*>(object);
    if (inner != nullptr && !holds_only_trees(*inner)) return false;
  }
  return true;
}

std::string unwritten_trees(const TDirectory& file) {
  std::string names;
  for_each_tree(file, [&](TTree& tree) {
    if (tree.GetEntries() == 0 || tree.GetDirectory()->GetListOfKeys()->FindObject(tree.GetName()) != nullptr) return;
    names += (names.empty() ? "" : ", ") + std::to_string(tree.GetEntries()) + " entries of " + tree.GetName();
  });
  return names;
}

}  // namespace wherry::root
