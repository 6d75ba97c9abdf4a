// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/tree_append.hpp"

#include <TBranch.h>
#include <TTreeCloner.h>
#include <cstdint>
#include <functional>

namespace {

// One step of the cloner's Exec is private, and Exec itself copies the streamer infos of every file: they are
// decompressed and read, which costs more than copying the baskets. Naming a private member is allowed in an explicit
// instantiation.
template <void (TTreeCloner::*Import)()>
struct ClusterAccess {
  friend void import_cluster_ranges(TTreeCloner& cloner) { (cloner.*Import)(); }
};
void import_cluster_ranges(TTreeCloner& cloner);
template struct ClusterAccess<&TTreeCloner::ImportClusterRanges>;

}  // namespace

namespace wherry::merge {

namespace {

// ROOT counts with signed numbers, and adds up those of all files.
constexpr Long64_t kMostEntries = Long64_t{1} << 48;
constexpr UInt_t kClonerOptions = TTreeCloner::kNoWarnings | TTreeCloner::kNoFileCache;

void for_each_branch(TObjArray* branches, const std::function<void(TBranch&)>& visit) {
  for (TObject* object : *branches) {
    auto* branch = static_cast<TBranch*>(object);
    visit(*branch);
    for_each_branch(branch->GetListOfBranches(), visit);
  }
}

std::int32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8 | static_cast<std::uint32_t>(byte);
  return static_cast<std::int32_t>(value);
}

bool basket_is_there(std::int64_t seek, std::int32_t bytes, std::span<const std::byte> file) {
  const auto size = static_cast<std::int64_t>(file.size());
  if (bytes <= 0 || seek <= 0 || seek > size - bytes || bytes < 4) return false;
  return big_endian(file.subspan(static_cast<std::size_t>(seek))) == bytes;
}

}  // namespace

namespace {

std::string fault_in_baskets(TBranch& branch, Long64_t entries, std::span<const std::byte> file) {
  const int count = branch.GetWriteBasket();
  if (count < 0 || count >= branch.GetMaxBaskets()) return "it has not the baskets that it says";
  const Long64_t* const first = branch.GetBasketEntry();
  for (int i = 0; i <= count; ++i) {
    if (first[i] < (i == 0 ? 0 : first[i - 1]) || first[i] > entries) {
      return "basket " + std::to_string(i) + " begins with an entry that cannot be";
    }
    if (i < count && !basket_is_there(branch.GetBasketSeek(i), branch.GetBasketBytes()[i], file)) {
      return "basket " + std::to_string(i) + " is not where it should be";
    }
  }
  return {};
}

}  // namespace

std::string wrong_baskets(TTree& tree, std::span<const std::byte> file) {
  const Long64_t entries = tree.GetEntries();
  if (entries < 0 || entries > kMostEntries)
    return std::string("tree ") + tree.GetName() + ": a number of entries that cannot be";
  std::string wrong;
  for_each_branch(tree.GetListOfBranches(), [&](TBranch& branch) {
    if (!wrong.empty()) return;
    wrong = fault_in_baskets(branch, entries, file);
    if (!wrong.empty()) wrong = std::string("tree ") + tree.GetName() + ", branch " + branch.GetName() + ": " + wrong;
  });
  return wrong;
}

bool has_no_baskets_in_memory(TTree& tree) {
  bool none = true;
  for_each_branch(tree.GetListOfBranches(),
                  [&](TBranch& branch) { none = none && branch.GetListOfBaskets()->GetEntries() == 0; });
  return none;
}

Way way_between(TTree& from, TTree& to, std::string* reason) {
  TTreeCloner cloner(&from, &to, "", kClonerOptions);
  if (cloner.IsValid()) return Way::baskets;
  if (cloner.NeedConversion()) return Way::entries;
  if (reason != nullptr) *reason = std::string("tree ") + from.GetName() + ": " + cloner.GetWarning();
  return Way::none;
}

TTree* make_like(TTree& from, TDirectory* directory, int compression) {
  const TDirectory::TContext context(directory);
  // CloneTree would connect the two, for entries that are copied one by one.
  auto* tree = dynamic_cast<TTree*>(from.Clone());
  if (tree == nullptr) return nullptr;
  tree->ResetBranchAddresses();
  tree->Reset();
  // Of the entries that are gone.
  tree->SetTreeIndex(nullptr);
  tree->SetDirectory(directory);
  if (compression >= 0) {
    for_each_branch(tree->GetListOfBranches(), [&](TBranch& branch) { branch.SetCompressionSettings(compression); });
  }
  return tree;
}

bool append(TTree& from, TTree& to, Way way, bool streamer_infos) {
  if (way == Way::entries) {
    const Long64_t entries = to.GetEntries() + from.GetEntries();
    return to.CopyEntries(&from, -1, "", true) >= 0 && to.GetEntries() == entries;
  }
  TTreeCloner cloner(&from, &to, "", kClonerOptions);
  if (!cloner.IsValid()) return false;
  to.SetEntries(to.GetEntries() + from.GetEntries());
  import_cluster_ranges(cloner);
  if (streamer_infos) cloner.CopyStreamerInfos();
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
