// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file/mount/kept_descriptors.hpp"
#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// What a mount leaves to the next daemon, and what an earlier one has left. All live as long as the mount, but for
/// `left`, which is looked at when the mount is made.
struct Keeping {
  KeptState* state = nullptr;              ///< null: nothing is kept
  KeptDescriptors* descriptors = nullptr;  ///< the same
  const KeptSnapshot* left = nullptr;      ///< null: there was no earlier daemon
};

}  // namespace wherry::file::mount
