// SPDX-License-Identifier: Apache-2.0
// A tree's index has a place for every entry. It is made when all of them are there; until then the tree has an empty
// one, which keeps the names of what it is by.
#pragma once

class TTree;

namespace wherry::merge {

/// If the one has an index and the other none, that gets an empty one by the same names.
void note_index(TTree& from, TTree& to);
/// Makes the index that the tree has an empty one for, if there is one. What ROOT says if it cannot, it says.
void build_index(TTree& tree);

}  // namespace wherry::merge
