// SPDX-License-Identifier: Apache-2.0
// Checks whether the baskets of one tree have the same meaning in another. ROOT's fast copy matches branches by name
// and compares little else.
#pragma once

#include <string>

class TTree;

namespace wherry::merge {

/// Returns an empty string if both trees have the same branches, and each stores its values in the same way. Else
/// returns the names of the branches that differ. A branch that is split in only one of the trees differs.
std::string difference_in_layout(TTree& file, TTree& output);

/// Returns whether baskets of this tree have no entry offsets, because ROOT calculates them from another branch
/// (kGenerateOffsetMap). ROOT's fast copy (6.40) loses track of that branch, and its result cannot be read.
bool calculates_offsets(TTree& tree);

}  // namespace wherry::merge
