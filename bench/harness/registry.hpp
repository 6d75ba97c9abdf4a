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
};

struct Registry {
  Systems systems;
  std::vector<Missing> missing;

  /// The built-in ones, those of the modules that could be loaded, and those that are programs (peers/foreign).
  static Registry find();

  /// The named ones, in this order; all if there are no names. Throws std::invalid_argument that names what there is.
  [[nodiscard]] std::vector<System*> select(std::span<const std::string> names) const;
};

/// Adds the systems of each wherry-peer-*.so: from the folder that WHERRY_BENCH_PEERS names, else from where the
/// program is and from ../lib/wherry/bench beside it. Modules stay loaded.
void add_modules(Registry& registry);

}  // namespace wherry::bench
