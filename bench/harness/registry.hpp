// SPDX-License-Identifier: Apache-2.0
// Which systems there are on this machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/system.hpp"

namespace wherry::bench {

/// What could be here and is not.
struct Missing {
  std::string name;
  std::string reason;
  std::string question{};  ///< the only one it would have answered; empty: any
};

struct Registry {
  Systems systems;
  std::vector<Missing> missing;

  /// The named ones, in this order; all if there are no names. Of two of one name, the one made for
  /// `question`, else the one that answers any. Throws std::invalid_argument that names what there is.
  [[nodiscard]] std::vector<System*> select(std::span<const std::string> names, const std::string& question = {}) const;
};

}  // namespace wherry::bench
