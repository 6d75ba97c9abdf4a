// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/branches.hpp"

#include <TBranch.h>
#include <cstdint>

namespace wherry::merge {

namespace {

// Limit of a tree's entries. ROOT adds up the signed numbers of all files, which must not overflow.
constexpr Long64_t kMostEntries = Long64_t{1} << 48;

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

std::string fault_in_baskets(TBranch& branch, Long64_t entries, std::span<const std::byte> file) {
  const int count = branch.GetWriteBasket();
  if (count < 0 || count >= branch.GetMaxBaskets()) return "its number of baskets is invalid";
  const Long64_t* const first = branch.GetBasketEntry();
  for (int i = 0; i <= count; ++i) {
    if (first[i] < (i == 0 ? 0 : first[i - 1]) || first[i] > entries) {
      return "basket " + std::to_string(i) + " begins with an invalid entry";
    }
    if (i < count && !basket_is_there(branch.GetBasketSeek(i), branch.GetBasketBytes()[i], file)) {
      return "basket " + std::to_string(i) + " is not where it should be";
    }
  }
  return {};
}

}  // namespace

void for_each_branch(TObjArray* branches, const std::function<void(TBranch&)>& visit) {
  for (TObject* object : *branches) {
    auto* branch = static_cast<TBranch*>(object);
    visit(*branch);
    for_each_branch(branch->GetListOfBranches(), visit);
  }
}

std::string wrong_baskets(TTree& tree, std::span<const std::byte> file) {
  const Long64_t entries = tree.GetEntries();
  if (entries < 0 || entries > kMostEntries)
    return std::string("tree ") + tree.GetName() + ": an invalid number of entries";
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

}  // namespace wherry::merge
