// SPDX-License-Identifier: Apache-2.0
// Visits the branches of a tree that was read from a file, and checks their baskets.
#pragma once

#include <TTree.h>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

class TBranch;
class TObjArray;

namespace wherry::merge {

/// Visits all branches and their sub-branches; each before its sub-branches.
void for_each_branch(TObjArray* branches, const std::function<void(TBranch&)>& visit);

/// Returns whether the tree's header contains no baskets. It contains those that were never written to the file.
bool has_no_baskets_in_memory(TTree& tree);

/// Returns an empty string if every basket of the tree is a record within the file's bytes, and the baskets begin with
/// increasing entries of the tree; else the first fault.
std::string wrong_baskets(TTree& tree, std::span<const std::byte> file);

}  // namespace wherry::merge
