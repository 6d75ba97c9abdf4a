// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/class_list.hpp"

#include <TBranchElement.h>
#include <TClass.h>
#include <TFile.h>
#include <TList.h>
#include <TObjArray.h>
#include <TStreamerElement.h>
#include <algorithm>
#include <set>
#include <string_view>

#include "adapters/root/merge/read/branches.hpp"
#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

namespace {

// Whether the class has a dictionary in this process. Then ROOT knows all its versions.
bool is_loaded(const TStreamerInfo& info) {
  const TClass* type = TClass::GetClass(info.GetName());
  return type != nullptr && type->IsLoaded();
}

bool same_members(const TStreamerInfo& one, const TStreamerInfo& other) {
  return one.GetCheckSum() == other.GetCheckSum() || ClassList::members_of(one) == ClassList::members_of(other);
}

/// Whether objects refer to the class by its version alone, so that there can be only one description per version.
/// Objects of a class without ClassDef contain a checksum of its members instead.
bool is_versioned(const TStreamerInfo& info, const ClassList::Classes& all) {
  if (info.GetClassVersion() != 1) return true;
  for (const TObject* object : *info.GetElements()) {
    if (!static_cast<const TStreamerElement*>(object)->IsBase()) continue;
    const std::string_view base = object->GetName();
    if (base == "TObject") return true;
    for (const auto& other : all) {
      if (other->GetName() == base && other.get() != &info && is_versioned(*other, all)) return true;
    }
  }
  return false;
}

std::string title_of(const TStreamerInfo& info) {
  return std::string("class ") + info.GetName() + ", version " + std::to_string(info.GetClassVersion());
}

/// Whether the class is split in one of the trees: a branch contains a member of its objects, without the version or
/// checksum that an object has.
bool is_split(const std::vector<SourceTree>& trees, std::string_view name) {
  bool found = false;
  for (const SourceTree& tree : trees) {
    for_each_branch(tree.tree->GetListOfBranches(), [&](TBranch& branch) {
      const auto* element = dynamic_cast<TBranchElement*>(&branch);
      found = found || (element != nullptr && element->GetID() >= 0 && element->GetClassName() == name);
    });
  }
  return found;
}

}  // namespace

ClassList::Classes ClassList::read(TFile& file) {
  Classes classes;
  const std::unique_ptr<TList> list(file.GetStreamerInfoList());
  if (!list) return classes;
  list->SetOwner(kFALSE);
  for (TObject* object : *list) {
    if (object->IsA() == TStreamerInfo::Class()) {
      classes.emplace_back(static_cast<TStreamerInfo*>(object));
    } else {
      delete object;  // conversion rules, which exist only for classes with a dictionary
    }
  }
  list->Clear("nodelete");
  return classes;
}

std::string ClassList::members_of(const TStreamerInfo& info) {
  std::string text;
  for (const TObject* object : *info.GetElements()) {
    const auto& member = static_cast<const TStreamerElement&>(*object);
    text += std::string(member.GetTypeName()) + ' ' + member.GetName();
    for (int i = 0; i < member.GetArrayDim(); ++i) text += '[' + std::to_string(member.GetMaxIndex(i)) + ']';
    if (member.GetFactor() != 0) {
      text += '(' + std::to_string(member.GetXmin()) + ',' + std::to_string(member.GetFactor()) + ')';
    }
    text += "; ";
  }
  return text;
}

std::string ClassList::objection(const Classes& file, const std::vector<SourceTree>& trees) const {
  for (const auto& info : file) {
    const auto [first, last] = classes_.equal_range(key_of(*info));
    for (auto there = first; there != last; ++there) {
      if (same_members(*info, *there->second) || is_loaded(*info)) continue;
      if (!is_versioned(*info, file) && !is_split(trees, info->GetName())) continue;
      return title_of(*info) + ", has the members " + members_of(*info) + "in the output " +
             members_of(*there->second) + "give it another version";
    }
  }
  return {};
}

std::map<std::string, std::string> ClassList::fixed(const Classes& file) {
  std::map<std::string, std::string> all;
  for (const auto& info : file) {
    if (!is_loaded(*info) && is_versioned(*info, file)) all[title_of(*info)] = members_of(*info);
  }
  return all;
}

void ClassList::add(const Classes& file) {
  for (const auto& info : file) {
    const Key key = key_of(*info);
    const auto [first, last] = classes_.equal_range(key);
    const auto known = [&](const auto& entry) { return same_members(*entry.second, *info); };
    if (std::any_of(first, last, known)) continue;
    classes_.emplace(key, info);
    changed_ = true;
  }
}

std::vector<TStreamerInfo*> ClassList::with(const std::vector<TStreamerInfo*>& tagged) const {
  std::vector<TStreamerInfo*> all;
  std::set<Key> of_root;
  for (TStreamerInfo* info : tagged) {
    if (!is_loaded(*info) && classes_.contains(key_of(*info))) continue;
    of_root.insert(key_of(*info));
    all.push_back(info);
  }
  for (const auto& [key, info] : classes_) {
    if (!of_root.contains(key)) all.push_back(info.get());
  }
  return all;
}

std::string misread_class(const ClassList::Classes& file) {
  for (const auto& info : file) {
    const TClass* type = TClass::GetClass(info->GetName());
    if (type == nullptr || type->IsLoaded() || !is_versioned(*info, file)) continue;
    const TObjArray* versions = type->GetStreamerInfos();
    const int version = info->GetClassVersion();
    if (version < versions->LowerBound() || version > versions->GetLast()) continue;
    const auto* known = static_cast<const TStreamerInfo*>(versions->At(version));
    if (known != nullptr && !same_members(*known, *info)) return info->GetName();
  }
  return {};
}

}  // namespace wherry::merge
