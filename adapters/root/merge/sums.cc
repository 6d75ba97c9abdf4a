// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/sums.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <utility>

#include "adapters/root/merge/add_up.hpp"
#include "adapters/root/merge/output_directories.hpp"

namespace wherry::merge {

Sums::Sums(OutputDirectories& directories) : directories_(directories) { parts_.read(directories); }

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

void Sums::add(const std::string& worker, SourceObject& from) {
  parts_.drop(worker, from.place.path());
  Sum* to = find(from.place);
  if (to == nullptr) {
    Sum sum{std::move(from.object), from.type, directories_.find(from.place.directory), from.place.name, {}, true};
    sums_.emplace(from.place.path(), std::move(sum));
    return;
  }
  to->changed = true;
  to->inputs.push_back(from.object.get());
}

void Sums::replace(const std::string& worker, SourceObject& from) {
  const std::string path = from.place.path();
  Sum* to = find(from.place);
  if (to == nullptr) {
    Sum sum{nullptr, from.type, directories_.find(from.place.directory), from.place.name, {}, false};
    to = &sums_.emplace(path, std::move(sum)).first->second;
  } else if (!parts_.has(path)) {
    parts_.set_rest(path, std::move(to->object));
  }
  to->changed = true;
  parts_.replace(worker, path, std::move(from.object));
}

std::vector<std::string> Sums::merge(const RootErrors& errors) {
  std::vector<std::string> wrong;
  for (auto& [path, sum] : sums_) {
    if (!sum.changed) continue;
    bool good = true;
    const std::size_t before = errors.count();
    if (parts_.has(path)) {
      good = merge_parts(path, sum);
    } else if (!sum.inputs.empty()) {
      good = add_up(*sum.type, sum.object, sum.inputs, sum.directory);
    }
    sum.inputs.clear();
    if (!good || errors.count() > before) wrong.push_back(path);
  }
  return wrong;
}

// Computes a sum from the rest and all parts, because a part cannot be subtracted from a sum.
bool Sums::merge_parts(const std::string& path, Sum& sum) {
  bool good = true;
  if (!sum.inputs.empty() && parts_.rest(path) == nullptr) {
    parts_.set_rest(path, copy_of(*sum.inputs.front()));
    sum.inputs.erase(sum.inputs.begin());
  }
  if (!sum.inputs.empty()) good = parts_.add_to_rest(path, sum.inputs);
  std::vector<TObject*> all = parts_.all(path);
  sum.object = copy_of(*all.front());
  all.erase(all.begin());
  return (all.empty() || add_up(*sum.type, sum.object, all, sum.directory)) && good;
}

void Sums::write(bool more_may_come) {
  for (auto& [path, sum] : sums_) {
    if (!std::exchange(sum.changed, false)) continue;
    sum.directory->WriteTObject(sum.object.get(), sum.name.c_str(), "overwrite");
    directories_.change(sum.directory);
  }
  if (more_may_come) parts_.write(directories_);
}

}  // namespace wherry::merge
