// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/shapes.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <TTree.h>
#include <utility>

#include "adapters/root/merge/tree_append.hpp"

namespace wherry::merge {

namespace {

std::string difference_of_trees(TTree& one, TTree& known) {
  std::string reason;
  return way_between(one, known, &reason) == Way::none ? reason : "";
}

}  // namespace

Shapes::Shapes() : file_("shapes", "RECREATE") {}

Shapes::~Shapes() {
  const TDirectory::TContext context;
  file_.Close();
}

std::string Shapes::agree(Output output, const std::vector<Shape>& shapes) {
  const TDirectory::TContext context;
  const std::lock_guard lock(mutex_);
  for (const Shape& shape : shapes) {
    if (std::string reason = objection(shape); !reason.empty()) return reason;
  }
  for (const Shape& shape : shapes) {
    const auto there = known_.find(shape.path);
    if (there == known_.end()) {
      Shape copy = shape;
      if (shape.tree != nullptr) copy.tree = make_like(*shape.tree, &file_, -1);
      known_.emplace(shape.path, Known{std::move(copy), {output}});
    } else if (!there->second.begun_by.empty()) {
      there->second.begun_by.insert(output);
    }
  }
  return {};
}

void Shapes::keep(Output output) {
  const std::lock_guard lock(mutex_);
  for (auto& [path, known] : known_) {
    if (known.begun_by.contains(output)) known.begun_by.clear();
  }
}

void Shapes::give_up(Output output) {
  const TDirectory::TContext context;
  const std::lock_guard lock(mutex_);
  for (auto entry = known_.begin(); entry != known_.end();) {
    auto& [shape, begun_by] = entry->second;
    if (begun_by.erase(output) == 0 || !begun_by.empty()) {
      ++entry;
    } else {
      delete shape.tree;
      entry = known_.erase(entry);
    }
  }
}

std::string Shapes::objection(const Shape& shape) const {
  const auto there = known_.find(shape.path);
  if (there == known_.end()) return {};
  const Shape& known = there->second.shape;
  if (known.kind != shape.kind) {
    return shape.path + ": is " + to_string(known.kind) + " in the output, not " + to_string(shape.kind);
  }
  if (shape.tree != nullptr && known.tree != nullptr) return difference_of_trees(*shape.tree, *known.tree);
  if (shape.type != known.type && known.type != nullptr) {
    return shape.path + ": is a " + known.type->GetName() + " in the output, not a " + shape.type->GetName();
  }
  if (shape.members != known.members) {
    return shape.path + ", has the members " + shape.members + "in the output " + known.members;
  }
  if (shape.fields != known.fields) return "RNTuple " + shape.path + ": has other fields in the output";
  return {};
}

}  // namespace wherry::merge
