// SPDX-License-Identifier: Apache-2.0
// Adds up objects of classes that have a Merge function, such as histograms.
#pragma once

#include <TObject.h>
#include <memory>
#include <vector>

class TClass;
class TDirectory;

namespace wherry::merge {

/// Adds the inputs to `sum`, whose class has Merge. False if some could not be added; the others are added.
bool add_up(TClass& type, std::unique_ptr<TObject>& sum, const std::vector<TObject*>& inputs, TDirectory* directory);
/// Returns a copy that belongs to no directory. Throws std::runtime_error.
std::unique_ptr<TObject> copy_of(const TObject& object);

}  // namespace wherry::merge
