// SPDX-License-Identifier: Apache-2.0
// Appends one output to another. So the shards of an output become one file (shard_names.hpp).
#pragma once

#include <string>

namespace wherry::merge {

class MergedFile;

/// Appends `from` to `to` with one commit, then removes `from` and its journal.
/// @param from   an output that was not closed and that no merger has open; `to` has no files of its workers. If a
///               process was killed before it removed `from`, it is only removed now.
/// @param whole  whether all workers had finished. Recorded in the journal at the first join, for a process that
///               continues an interrupted end.
/// Throws std::exception. Then `to` must not be used any more, and `from` is unchanged.
void join(MergedFile& to, const std::string& from, bool whole);

}  // namespace wherry::merge
