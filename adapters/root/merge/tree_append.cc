// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/tree_append.hpp"

#include <TBranch.h>
#include <TTreeCloner.h>

#include "adapters/root/merge/read/branches.hpp"
#include "adapters/root/merge/tree_layout.hpp"

namespace {

// Gives access to a private step of TTreeCloner::Exec. Exec itself cannot be used: it also copies the streamer infos of
// every file. They would be decompressed and read, which costs more than copying the baskets, and would be those of the
// process (class_list.hpp). An explicit instantiation may name a private member.
template <void (TTreeCloner::*Import)()>
struct ClusterAccess {
  friend void import_cluster_ranges(TTreeCloner& cloner) { (cloner.*Import)(); }
};
void import_cluster_ranges(TTreeCloner& cloner);
template struct ClusterAccess<&TTreeCloner::ImportClusterRanges>;

}  // namespace

namespace wherry::merge {

namespace {

constexpr UInt_t kClonerOptions = TTreeCloner::kNoWarnings | TTreeCloner::kNoFileCache;

}  // namespace

Way way_between(TTree& from, TTree& to, std::string* reason) {
  if (const std::string difference = difference_in_layout(from, to); !difference.empty()) {
    if (reason != nullptr) *reason = std::string("tree ") + from.GetName() + ": " + difference;
    return Way::none;
  }
  TTreeCloner cloner(&from, &to, "", kClonerOptions);
  if (cloner.IsValid()) return calculates_offsets(from) || calculates_offsets(to) ? Way::entries : Way::baskets;
  if (cloner.NeedConversion()) return Way::entries;
  if (reason != nullptr) *reason = std::string("tree ") + from.GetName() + ": " + cloner.GetWarning();
  return Way::none;
}

TTree* make_like(TTree& from, TDirectory* directory, int compression) {
  const TDirectory::TContext context(directory);
  // Not CloneTree, which connects the addresses of both trees.
  auto* tree = dynamic_cast<TTree*>(from.Clone());
  if (tree == nullptr) return nullptr;
  tree->ResetBranchAddresses();
  tree->Reset();
  // The cloned index refers to entries that the new tree does not have.
  tree->SetTreeIndex(nullptr);
  tree->SetDirectory(directory);
  if (compression >= 0) {
    for_each_branch(tree->GetListOfBranches(), [&](TBranch& branch) { branch.SetCompressionSettings(compression); });
  }
  return tree;
}

bool append(TTree& from, TTree& to, Way way) {
  if (way == Way::entries) {
    const Long64_t entries = to.GetEntries() + from.GetEntries();
    return to.CopyEntries(&from, -1, "", true) >= 0 && to.GetEntries() == entries;
  }
  TTreeCloner cloner(&from, &to, "", kClonerOptions);
  if (!cloner.IsValid()) return false;
  to.SetEntries(to.GetEntries() + from.GetEntries());
  import_cluster_ranges(cloner);
  cloner.CopyProcessIds();
  cloner.CloseOutWriteBaskets();
  cloner.CollectBaskets();
  cloner.SortBaskets();
  cloner.WriteBaskets();
  cloner.CopyMemoryBaskets();
  return true;
}

bool append_entries(TTree& from, TTree& to, Long64_t first) {
  to.CopyAddresses(&from);
  bool good = true;
  for (Long64_t entry = first; good && entry < from.GetEntries(); ++entry) {
    good = from.GetEntry(entry) >= 0 && to.Fill() >= 0;
  }
  to.CopyAddresses(&from, true);
  return good;
}

}  // namespace wherry::merge
