// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/tree_numbers.hpp"

#include <TBranch.h>
#include <TBranchElement.h>
#include <TBufferFile.h>
#include <TClass.h>
#include <TFile.h>
#include <TLeafI.h>
#include <TLeafL.h>
#include <TTree.h>
#include <TVirtualStreamerInfo.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace wherry::merge {

namespace {

std::uint64_t big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | static_cast<std::uint64_t>(byte);
  return value;
}

/// Returns the address of a member of an object: a number, or a pointer to numbers. Throws std::runtime_error if the
/// class has no such member.
void* member(void* object, TClass* type, const char* name) {
  int offset = 0;
  TVirtualStreamerInfo* info = type->GetStreamerInfo();
  if (info == nullptr || info->GetStreamerElement(name, offset) == nullptr || offset <= 0) {
    throw std::runtime_error(std::string(type->GetName()) + " has no " + name);
  }
  return static_cast<char*>(object) + offset;
}

}  // namespace

/// A ROOT buffer that records the source and the destination of each number that ROOT reads from it.
class TreeNumbers::Onlooker final : public TBufferFile {
 public:
  Onlooker(std::span<std::byte> bytes, TFile& file)
      : TBufferFile(TBuffer::kRead, static_cast<Int_t>(bytes.size()), bytes.data(), kFALSE) {
    SetParent(&file);
  }
  using TBufferFile::ReadFastArray;
  void ReadInt(Int_t& number) override {
    note(&number, 1);
    TBufferFile::ReadInt(number);
  }
  void ReadLong64(Long64_t& number) override {
    note(&number, 1);
    TBufferFile::ReadLong64(number);
  }
  void ReadFastArray(Int_t* first, Int_t count) override {
    note(first, count);
    TBufferFile::ReadFastArray(first, count);
  }
  void ReadFastArray(Long64_t* first, Int_t count) override {
    note(first, count);
    TBufferFile::ReadFastArray(first, count);
  }

  /// Returns the offset from which the number was read; empty if it was not read.
  [[nodiscard]] std::optional<std::size_t> place_of(const Number& number) const {
    const auto found = places_.find(number.address);
    if (found == places_.end() || found->second.bytes != number.bytes) return {};
    return found->second.at;
  }

 private:
  template <typename Type>
  void note(Type* first, Int_t count) {
    for (Int_t i = 0; i < count; ++i) {
      places_[first + i] = {first + i, sizeof(Type), static_cast<std::size_t>(Length()) + i * sizeof(Type)};
    }
  }

  std::unordered_map<const void*, Number> places_;
};

/// Collects the addresses of all numbers of a tree.
class TreeNumbers::Collector {
 public:
  explicit Collector(TTree& tree) {
    for (const char* name :
         {"fEntries", "fTotBytes", "fZipBytes", "fSavedBytes", "fFlushedBytes", "fAutoSave", "fAutoFlush"}) {
      add<Long64_t>(&tree, TTree::Class(), name);
    }
    const auto ranges = *static_cast<Int_t*>(member(&tree, TTree::Class(), "fNClusterRange"));
    for (const char* name : {"fClusterRangeEnd", "fClusterSize"}) {
      add_some(*static_cast<Long64_t**>(member(&tree, TTree::Class(), name)), ranges);
    }
    add_branches(*tree.GetListOfBranches());
  }

  std::vector<Number> numbers;

 private:
  template <typename Type>
  void add(void* object, TClass* type, const char* name) {
    numbers.push_back({member(object, type, name), sizeof(Type)});
  }
  template <typename Type>
  void add_some(Type* first, Int_t count) {
    for (Int_t i = 0; i < count; ++i) numbers.push_back({first + i, sizeof(Type)});
  }

  void add_branches(const TObjArray& branches) {
    for (TObject* object : branches) {
      auto* branch = static_cast<TBranch*>(object);
      add_branch(*branch);
      for (TObject* leaf : *branch->GetListOfLeaves()) add_leaf(*leaf);
      add_branches(*branch->GetListOfBranches());
    }
  }

  void add_branch(TBranch& branch) {
    for (const char* name : {"fEntryNumber", "fEntries", "fTotBytes", "fZipBytes"}) {
      add<Long64_t>(&branch, TBranch::Class(), name);
    }
    for (const char* name : {"fBasketSize", "fEntryOffsetLen"}) add<Int_t>(&branch, TBranch::Class(), name);
    const Int_t baskets = branch.GetWriteBasket();
    add_some(branch.GetBasketBytes(), baskets);
    add_some(branch.GetBasketEntry(), baskets + 1);  // the last one is where the next basket would begin
    add_some(*static_cast<Long64_t**>(member(&branch, TBranch::Class(), "fBasketSeek")), baskets);
    if (auto* element = dynamic_cast<TBranchElement*>(&branch)) {
      add<Int_t>(element, TBranchElement::Class(), "fMaximum");
    }
  }

  // Adds the ranges, which leaves that count elements have.
  void add_leaf(TObject& leaf) {
    if (auto* number = dynamic_cast<TLeafI*>(&leaf)) {
      for (const char* name : {"fMinimum", "fMaximum"}) add<Int_t>(number, TLeafI::Class(), name);
    } else if (auto* large = dynamic_cast<TLeafL*>(&leaf)) {
      for (const char* name : {"fMinimum", "fMaximum"}) add<Long64_t>(large, TLeafL::Class(), name);
    }
  }
};

std::optional<TreeNumbers> TreeNumbers::read(const Header& header) {
  std::vector<std::byte> bytes(header.key_bytes + header.bytes.size());
  std::ranges::copy(header.bytes, bytes.begin() + static_cast<std::ptrdiff_t>(header.key_bytes));
  TreeNumbers found;
  found.header_.assign(header.bytes.begin(), header.bytes.end());
  // As in TKey: ROOT counts offsets within an object from the beginning of its key.
  Onlooker buffer(bytes, header.file);
  buffer.SetBufferOffset(static_cast<Int_t>(header.key_bytes));
  const TDirectory::TContext context(&header.file);
  void* const made = header.type.New();
  found.tree.reset(static_cast<TTree*>(header.type.DynamicCast(TTree::Class(), made)));
  buffer.MapObject(made, &header.type);
  found.tree->Streamer(buffer);
  if (const auto add = header.type.GetDirectoryAutoAdd()) add(made, &header.file);
  try {
    found.numbers_ = std::move(Collector(*found.tree).numbers);
  } catch (const std::runtime_error&) {
    return {};
  }
  for (Number& number : found.numbers_) {
    const auto place = buffer.place_of(number);
    if (!place || *place < header.key_bytes) return {};
    number.at = *place - header.key_bytes;
  }
  std::ranges::sort(found.numbers_, {}, &Number::at);
  const auto overlap = [](const Number& one, const Number& next) { return one.at + one.bytes > next.at; };
  if (std::ranges::adjacent_find(found.numbers_, overlap) != found.numbers_.end()) return {};
  return found;
}

bool TreeNumbers::fits(std::span<const std::byte> header) const {
  if (header.size() != header_.size()) return false;
  std::size_t at = 0;
  const auto same_until = [&](std::size_t end) { return std::memcmp(&header[at], &header_[at], end - at) == 0; };
  for (const Number& number : numbers_) {
    if (!same_until(number.at)) return false;
    at = number.at + number.bytes;
  }
  return same_until(header.size());
}

void TreeNumbers::set(std::span<const std::byte> header) const {
  for (const Number& number : numbers_) {
    const std::uint64_t value = big_endian(header.subspan(number.at, number.bytes));
    std::memcpy(number.address, &value, number.bytes);  // this machine is little-endian (layout/wire.hpp)
  }
}

}  // namespace wherry::merge
