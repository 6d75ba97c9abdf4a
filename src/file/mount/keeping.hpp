// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file/mount/kept_descriptors.hpp"
#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// What a mount leaves to the next daemon, and what an earlier one has left. All objects live as long as the mount,
/// except `left`, which is read only while the mount is made.
struct Keeping {
  KeptState* state = nullptr;              ///< null: nothing is kept
  KeptDescriptors* descriptors = nullptr;  ///< null: nothing is kept
  const KeptSnapshot* left = nullptr;      ///< null: there was no earlier daemon
};

}  // namespace wherry::file::mount
