// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "bench/systems/root/job.hpp"
#include "bench/systems/root/program/image.hpp"

namespace wherry::bench::root {

/// Takes samples. It has started ROOT once, with its interpreter and all it loads at first use, and forks servers and
/// workers off: so none of them starts a ROOT of its own while the clock runs.
class Coordinator {
 public:
  /// Uses everything of ROOT once. Files of samples come and go in `folder`.
  explicit Coordinator(std::string folder);

  /// Throws std::exception, which names the process that failed; no process is left over then.
  Finding run(const Job& job);

 private:
  const Image& image(Tree tree, std::uint64_t size);

  std::string folder_;
  std::map<std::pair<Tree, std::uint64_t>, Image> images_;
};

}  // namespace wherry::bench::root
