// SPDX-License-Identifier: Apache-2.0
// Appends the entries of one TTree to another. Copies the baskets as they are if possible.
#pragma once

#include <TTree.h>
#include <string>

#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

/// Determines how `from` can be appended to `to`. For Way::none, sets `reason` if it is not null.
Way way_between(TTree& from, TTree& to, std::string* reason);

/// Creates an empty tree like `from`, which `directory` owns. Null if that fails.
/// @param compression  of its baskets; -1: as in `from`
TTree* make_like(TTree& from, TDirectory* directory, int compression);

/// Appends all entries. Does not copy the descriptions of classes. False if something could not be read.
bool append(TTree& from, TTree& to, Way way);
/// Appends the entries from `first` on, one by one. False if one could not be read.
bool append_entries(TTree& from, TTree& to, Long64_t first);

}  // namespace wherry::merge
