// SPDX-License-Identifier: Apache-2.0
#include "whole_objects.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <TList.h>
#include <unordered_map>
#include <vector>

#include "adapters/root/layout/whole_objects.hpp"

namespace wherry::root {

namespace {

bool is_attached(const TDirectory& directory, const TObject& object) {
  if (directory.GetList()->FindObject(&object) == &object) return true;
  for (TObject* entry : *directory.GetList()) {
    const auto* const inner = dynamic_cast<TDirectory*>(entry);
    if (inner != nullptr && is_attached(*inner, object)) return true;
  }
  return false;
}

/// Caches the answer per class: ROOT's interpreter is slow.
bool has_reset(TClass& type) {
  thread_local std::unordered_map<const TClass*, bool> known;
  const auto [answer, fresh] = known.try_emplace(&type, false);
  if (fresh) answer->second = type.GetMethodWithPrototype("Reset", "Option_t*") != nullptr;
  return answer->second;
}

std::string path_of(const TDirectory& file, const TDirectory& directory) {
  if (&directory == &file || directory.GetMotherDir() == nullptr) return "";
  return path_of(file, *directory.GetMotherDir()) + "/" + directory.GetName();
}

}  // namespace

void WholeObjects::note(const TDirectory& file, const TDirectory& mother, const TObject& object, const char* name) {
  TClass* const type = object.IsA();
  if (type->GetMerge() == nullptr) return;
  const std::string path = path_of(file, mother) + "/" + name;
  const bool begins_anew = is_attached(file, object) && (type->GetResetAfterMerge() != nullptr || has_reset(*type));
  if (begins_anew && type->GetResetAfterMerge() == nullptr) attached_[&object] = object.GetName();
  const bool changed = begins_anew ? paths_.erase(path) > 0 : paths_.insert(path).second;
  written_ = written_ && !changed;
}

void WholeObjects::write(TDirectory& file) {
  if (written_) return;
  written_ = true;
  const std::vector<std::string> paths(paths_.begin(), paths_.end());
  file.WriteObject(&paths, layout::kRootWholeObjects, "overwrite");
}

void WholeObjects::begin_next(const TDirectory& file) {
  reset_in(file);
  paths_.clear();
  attached_.clear();
  written_ = true;
}

void WholeObjects::reset_in(const TDirectory& directory) {
  for (TObject* object : *directory.GetList()) {
    if (const auto* const inner = dynamic_cast<TDirectory*>(object)) {
      reset_in(*inner);
      continue;
    }
    const auto written = attached_.find(object);
    if (written != attached_.end() && written->second == object->GetName()) object->Execute("Reset", "");
  }
}

}  // namespace wherry::root
