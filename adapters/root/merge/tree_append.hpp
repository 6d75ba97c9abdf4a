// SPDX-License-Identifier: Apache-2.0
// Appends the entries of one TTree to another, as a raw copy of its baskets where that is possible.
#pragma once

#include <TTree.h>
#include <string>

#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

/// `reason`, if not null, is why there is no way.
Way way_between(TTree& from, TTree& to, std::string* reason);

/// A tree in `directory` like this one, without entries. compression: of its baskets, -1 for those of `from`.
TTree* make_like(TTree& from, TDirectory* directory, int compression);

/// What describes its classes is not copied. False if something could not be read.
bool append(TTree& from, TTree& to, Way way);
/// Appends the entries from `first` on, one by one. False as above.
bool append_entries(TTree& from, TTree& to, Long64_t first);

}  // namespace wherry::merge
