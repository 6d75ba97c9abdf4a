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

  /// The built-in ones, those of the modules that could be loaded, and those that are programs (systems/programs).
  static Registry find();

  /// The named ones, in this order; all if there are no names. Of two of one name that whose own question it is, else
  /// that which answers any. Throws std::invalid_argument that names what there is.
  [[nodiscard]] std::vector<System*> select(std::span<const std::string> names, const std::string& question = {}) const;
};

/// Adds the systems of each wherry-peer-*.so: from the folder that WHERRY_BENCH_PEERS names, else from where the
/// program is and from ../lib/wherry/bench beside it. Modules stay loaded. What was not built for want of a library is
/// missing, and the reason says which package has it.
void add_modules(Registry& registry);

}  // namespace wherry::bench
