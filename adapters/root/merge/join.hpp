// SPDX-License-Identifier: Apache-2.0
// Appends an output to another, whole: its shards become one (shard_names.hpp).
#pragma once

#include <string>

namespace wherry::merge {

class MergedFile;

/// `from` is an output that was not closed and that no merger has open, of workers that `to` has no files of. It
/// becomes part of `to` with one commit, and is removed with its journal. If that is the first, `whole` is noted for a
/// process that has to go on with the end: whether all workers had finished. It is in `to` already if a process was
/// killed between the two. Errors are thrown (std::exception): `to` is of no use then, and what `from` holds stays
/// where it is.
void join(MergedFile& to, const std::string& from, bool whole);

}  // namespace wherry::merge
