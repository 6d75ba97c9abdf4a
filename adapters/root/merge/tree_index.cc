// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/tree_index.hpp"

#include <TClass.h>
#include <TString.h>
#include <TTree.h>
#include <TVirtualIndex.h>
#include <string>
#include <string_view>
#include <utility>

namespace wherry::merge {

namespace {

/// Returns the tree's index if it is a TTreeIndex; null for other kinds, such as that of a chain.
TVirtualIndex* index_of(TTree& tree) {
  TVirtualIndex* const index = tree.GetTreeIndex();
  return index != nullptr && std::string_view(index->IsA()->GetName()) == "TTreeIndex" ? index : nullptr;
}

// Creates an empty index with the same names, by reflection. The class is in ROOT's library for drawing trees, which is
// not linked; ROOT loads it when a file has such an index.
TVirtualIndex* empty_like(const TVirtualIndex& index) {
  TClass* const type = index.IsA();
  auto* const made = static_cast<char*>(type->New());
  for (const auto& [member, value] :
       {std::pair{"fMajorName", index.GetMajorName()}, {"fMinorName", index.GetMinorName()}}) {
    *reinterpret_cast<TString*>(made + type->GetDataMemberOffset(member)) = value;
  }
  return static_cast<TVirtualIndex*>(type->DynamicCast(TVirtualIndex::Class(), made));
}

}  // namespace

void note_index(TTree& from, TTree& to) {
  const TVirtualIndex* const index = index_of(from);
  if (index != nullptr && to.GetTreeIndex() == nullptr) to.SetTreeIndex(empty_like(*index));
}

void build_index(TTree& tree) {
  const TVirtualIndex* const index = index_of(tree);
  if (index == nullptr) return;
  const std::string major = index->GetMajorName();
  const std::string minor = index->GetMinorName();
  tree.SetTreeIndex(nullptr);
  delete index;
  tree.BuildIndex(major.c_str(), minor.c_str());
}

}  // namespace wherry::merge
