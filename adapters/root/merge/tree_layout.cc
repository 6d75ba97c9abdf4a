// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/tree_layout.hpp"

#include <TBranch.h>
#include <TBranchElement.h>
#include <TLeaf.h>
#include <TLeafC.h>
#include <TLeafD32.h>
#include <TLeafF16.h>
#include <TStreamerElement.h>
#include <TTree.h>
#include <ROOT/TIOFeatures.hxx>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/root/merge/read/branches.hpp"

namespace wherry::merge {

namespace {

// Branches that an error message names.
constexpr std::size_t kMostNamed = 8;

/// Everything that determines how the values of a leaf are stored.
struct LeafLayout {
  std::string name = {};
  TClass* type = nullptr;
  int length = 0;
  int value_bytes = 0;
  bool is_unsigned = false;
  std::string counter = {};  // only for an array of variable length
  double low = 0;            // low and factor: only for numbers that are stored in few bits
  double factor = 0;
  bool operator==(const LeafLayout&) const = default;
};

/// Everything that determines how the objects of a branch are stored.
struct ObjectLayout {
  std::string class_name = {};
  std::string clones_name = {};
  int type = 0;
  int streamer_type = 0;
  int version = 0;  // of the class of a member; whole objects contain their version
  bool operator==(const ObjectLayout&) const = default;
};

const char* packed_type(const TLeaf& leaf) {
  if (leaf.InheritsFrom(TLeafD32::Class())) return "Double32_t";
  return leaf.InheritsFrom(TLeafF16::Class()) ? "Float16_t" : nullptr;
}

LeafLayout layout_of(const TLeaf& leaf, bool only_one) {
  LeafLayout layout{.type = leaf.IsA(),
                    // Not compared for a string, where it is the length of the longest.
                    .length = leaf.InheritsFrom(TLeafC::Class()) ? 0 : leaf.GetLenStatic(),
                    .value_bytes = leaf.GetLenType(),
                    .is_unsigned = leaf.IsUnsigned()};
  // Names matter only if a branch has several leaves, whose values follow each other.
  if (!only_one) layout.name = leaf.GetName();
  if (const TLeaf* counter = leaf.GetLeafCount()) layout.counter = counter->GetName();
  if (const char* packed = packed_type(leaf)) {
    const TStreamerElement element(leaf.GetName(), leaf.GetTitle(), 0, 0, packed);
    layout.low = element.GetXmin();
    layout.factor = element.GetFactor();
  }
  return layout;
}

ObjectLayout layout_of(TBranch& branch) {
  ObjectLayout layout{.class_name = branch.GetClassName()};
  if (auto* element = dynamic_cast<TBranchElement*>(&branch)) {
    layout.clones_name = element->GetClonesName();
    layout.type = element->GetType();
    layout.streamer_type = element->GetStreamerType();
    if (element->GetID() >= 0) layout.version = element->GetClassVersion();
  }
  return layout;
}

bool same_leaves(TBranch& one, TBranch& other) {
  const TObjArray& leaves = *one.GetListOfLeaves();
  const TObjArray& others = *other.GetListOfLeaves();
  const int count = leaves.GetEntries();
  if (count != others.GetEntries()) return false;
  for (int i = 0; i < count; ++i) {
    const auto& leaf = static_cast<const TLeaf&>(*leaves.At(i));
    if (layout_of(leaf, count == 1) != layout_of(static_cast<const TLeaf&>(*others.At(i)), count == 1)) return false;
  }
  return true;
}

std::string describe(TBranch& branch) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const ObjectLayout layout = layout_of(branch);
  if (!layout.class_name.empty()) {
    add(layout.class_name + (layout.version == 0 ? "" : " version " + std::to_string(layout.version)));
  }
  for (const TObject* object : *branch.GetListOfLeaves()) {
    const auto& leaf = static_cast<const TLeaf&>(*object);
    add(std::string(leaf.IsUnsigned() ? "unsigned " : "") + leaf.ClassName() + " " + leaf.GetTitle());
  }
  return text.empty() ? branch.ClassName() : text;
}

class Comparison {
 public:
  void compare(TObjArray& file, TObjArray& output, const std::string& path) {
    std::vector<TBranch*> others;
    for (TObject* object : output) others.push_back(static_cast<TBranch*>(object));
    std::size_t next = 0;
    for (TObject* object : file) {
      auto& branch = static_cast<TBranch&>(*object);
      TBranch* other = take(others, next++, branch.GetName());
      if (other == nullptr) {
        only_in_file_.push_back(path + branch.GetName());
      } else {
        compare(branch, *other, path);
      }
    }
    for (const TBranch* other : others) {
      if (other != nullptr) only_in_output_.push_back(path + other->GetName());
    }
  }

  [[nodiscard]] std::string result() const {
    if (!different_.empty()) return different_;
    std::string text = named(only_in_file_, "not in the output");
    const std::string missing = named(only_in_output_, "in the output only");
    return text + (text.empty() || missing.empty() ? "" : "; ") + missing;
  }

 private:
  /// Removes and returns the branch of this name; null if there is none. Tries index `likely` first, as the order is
  /// usually the same.
  static TBranch* take(std::vector<TBranch*>& branches, std::size_t likely, std::string_view name) {
    const auto is_it = [name](const TBranch* branch) { return branch != nullptr && branch->GetName() == name; };
    if (likely < branches.size() && is_it(branches[likely])) return std::exchange(branches[likely], nullptr);
    const auto found = std::ranges::find_if(branches, is_it);
    return found == branches.end() ? nullptr : std::exchange(*found, nullptr);
  }

  void compare(TBranch& file, TBranch& output, const std::string& path) {
    if (file.IsA() == output.IsA() && layout_of(file) == layout_of(output) && same_leaves(file, output)) {
      compare(*file.GetListOfBranches(), *output.GetListOfBranches(), path + file.GetName() + "/");
    } else if (different_.empty()) {
      different_ = "branch " + path + file.GetName() + " is " + describe(file) + ", in the output " + describe(output);
    }
  }

  static std::string named(const std::vector<std::string>& branches, const char* where) {
    if (branches.empty()) return {};
    std::string text = branches.size() == 1 ? "branch " : "branches ";
    for (std::size_t i = 0; i < std::min(branches.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + branches[i];
    if (branches.size() > kMostNamed) text += " and " + std::to_string(branches.size() - kMostNamed) + " more";
    return text + (branches.size() == 1 ? " is " : " are ") + where;
  }

  std::vector<std::string> only_in_file_;
  std::vector<std::string> only_in_output_;
  std::string different_;
};

}  // namespace

std::string difference_in_layout(TTree& file, TTree& output) {
  Comparison comparison;
  comparison.compare(*file.GetListOfBranches(), *output.GetListOfBranches(), "");
  return comparison.result();
}

bool calculates_offsets(TTree& tree) {
  bool found = false;
  for_each_branch(tree.GetListOfBranches(), [&found](TBranch& branch) {
    const ROOT::TIOFeatures features = branch.GetIOFeatures();
    found =
        found || (branch.GetEntryOffsetLen() > 0 && features.Test(ROOT::Experimental::EIOFeatures::kGenerateOffsetMap));
  });
  return found;
}

}  // namespace wherry::merge
