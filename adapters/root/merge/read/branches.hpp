// SPDX-License-Identifier: Apache-2.0
// The branches of a tree that was read from a file, and whether their baskets are where it says.
#pragma once

#include <TTree.h>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

class TBranch;
class TObjArray;

namespace wherry::merge {

/// Visits all of them, each before those below it.
void for_each_branch(TObjArray* branches, const std::function<void(TBranch&)>& visit);

/// Baskets that were never written lie in the tree's header.
bool has_no_baskets_in_memory(TTree& tree);

/// Empty if every basket of the tree is a record that lies within the file's bytes, and they have the tree's entries in
/// their order; else what is wrong.
std::string wrong_baskets(TTree& tree, std::span<const std::byte> file);

}  // namespace wherry::merge
