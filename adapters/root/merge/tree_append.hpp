// SPDX-License-Identifier: Apache-2.0
// Appends the entries of one TTree to another, as a raw copy of its baskets where that is possible.
#pragma once

#include <TTree.h>
#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// Baskets that were never written lie in the tree's header.
bool has_no_baskets_in_memory(TTree& tree);

/// Empty if every basket of the tree is a record that lies within the file's bytes, and they have the tree's entries in
/// their order; else what is wrong.
std::string wrong_baskets(TTree& tree, std::span<const std::byte> file);

/// How entries of one tree can become entries of another.
enum class Way : std::uint8_t {
  baskets,  ///< copied as they are
  entries,  ///< read and filled again: types or compression differ
  none,     ///< the trees have nothing to do with each other
};

/// `reason`, if not null, is why there is no way.
Way way_between(TTree& from, TTree& to, std::string* reason);

/// A tree in `directory` like this one, without entries. compression: of its baskets, -1 for those of `from`.
TTree* make_like(TTree& from, TDirectory* directory, int compression);

/// streamer_infos: whether what describes the classes in `from` has to be copied too.
/// False if something could not be read.
bool append(TTree& from, TTree& to, Way way, bool streamer_infos);
/// One by one, from this one on. False as above.
bool append_entries(TTree& from, TTree& to, Long64_t first);

}  // namespace wherry::merge
