// SPDX-License-Identifier: Apache-2.0
// Rebuilds the index of a merged tree. An index contains every entry, so it is built when the output is complete. Until
// then the tree has an empty index, which keeps the names of the indexed expressions.
#pragma once

class TTree;

namespace wherry::merge {

/// If `from` has an index and `to` has none, gives `to` an empty one with the same names.
void note_index(TTree& from, TTree& to);
/// Builds the index of a tree that has one. ROOT reports errors.
void build_index(TTree& tree);

}  // namespace wherry::merge
