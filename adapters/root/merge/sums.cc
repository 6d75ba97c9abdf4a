// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/sums.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <utility>

#include "adapters/root/merge/add_up.hpp"
#include "adapters/root/merge/output_directories.hpp"

namespace wherry::merge {

Sums::Sum* Sums::find(const Place& place) {
  const auto known = sums_.find(place.path());
  if (known != sums_.end()) return &known->second;
  std::unique_ptr<TObject> object(directories_.read(place));
  if (!object) return nullptr;
  TClass* type = object->IsA();
  take_out_of_directory(*object);
  Sum sum{std::move(object), type, directories_.find(place.directory), place.name, {}, false};
  return &sums_.emplace(place.path(), std::move(sum)).first->second;
}

TClass* Sums::class_of(const Place& place) {
  const Sum* sum = find(place);
  return sum == nullptr ? nullptr : sum->type;
}

void Sums::add(SourceObject& from) {
  Sum* to = find(from.place);
  if (to == nullptr) {
    Sum sum{std::move(from.object), from.type, directories_.find(from.place.directory), from.place.name, {}, true};
    sums_.emplace(from.place.path(), std::move(sum));
    return;
  }
  to->changed = true;
  to->inputs.push_back(from.object.get());
}

std::string Sums::merge() {
  std::string wrong;
  for (auto& [path, sum] : sums_) {
    if (sum.inputs.empty()) continue;
    if (!add_up(*sum.type, *sum.object, sum.inputs, sum.directory)) wrong = path + " could not be merged";
    sum.inputs.clear();
  }
  return wrong;
}

void Sums::write() {
  for (auto& [path, sum] : sums_) {
    if (!std::exchange(sum.changed, false)) continue;
    sum.directory->WriteTObject(sum.object.get(), sum.name.c_str(), "overwrite");
    directories_.change(sum.directory);
  }
}

}  // namespace wherry::merge
