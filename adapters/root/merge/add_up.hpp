// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <TObject.h>
#include <memory>
#include <vector>

class TClass;
class TDirectory;

namespace wherry::merge {

/// Adds the inputs to an object of a class that has Merge. False if not all of them could be added; the others are.
bool add_up(TClass& type, std::unique_ptr<TObject>& sum, const std::vector<TObject*>& inputs, TDirectory* directory);
/// A copy that belongs to no directory. Throws std::runtime_error.
std::unique_ptr<TObject> copy_of(const TObject& object);

}  // namespace wherry::merge
