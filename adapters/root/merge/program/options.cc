// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/options.hpp"

#include <filesystem>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/commit/shard_names.hpp"

namespace wherry::merge {

std::string objection_to(const ProgramOptions& options, const std::string& output) {
  namespace fs = std::filesystem;
  if (!options.force && fs::exists(output) && !fs::exists(Journal::path_of(output))) {
    return output + " exists; --force replaces it";
  }
  // A shard without a journal may contain data that exists nowhere else.
  for (const unsigned shard : shards_beside(output)) {
    const std::string path = shard_path(output, shard);
    if (!fs::exists(Journal::path_of(path))) return path + " exists without its journal; move it away";
  }
  return {};
}

}  // namespace wherry::merge
