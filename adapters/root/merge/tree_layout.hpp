// SPDX-License-Identifier: Apache-2.0
// Whether baskets of one tree mean the same in another. ROOT's fast copy matches branches by name and compares little
// else.
#pragma once

#include <string>

class TTree;

namespace wherry::merge {

/// Empty if both trees have the same branches, and each stores its values in the same way; else names the branches
/// that differ. A branch that is split in one tree only does not count: ROOT converts its entries.
std::string difference_in_layout(TTree& file, TTree& output);

/// Whether baskets of this tree have no entry offsets: ROOT calculates them from another branch (kGenerateOffsetMap).
/// Its fast copy (6.40) loses track of that branch, and its result cannot be read.
bool calculates_offsets(TTree& tree);

}  // namespace wherry::merge
