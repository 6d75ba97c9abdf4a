// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/commit/shard_names.hpp"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "adapters/root/merge/commit/journal.hpp"

namespace wherry::merge {

namespace {
constexpr std::string_view kBefore = ".shard-";
constexpr std::string_view kBehind = ".root";
}  // namespace

std::string shard_path(const std::string& output, unsigned shard) {
  return shard == 0 ? output : output + std::string(kBefore) + std::to_string(shard) + std::string(kBehind);
}

std::optional<std::string> output_of_shard(const std::string& path) {
  const std::size_t at = path.rfind(kBefore);
  if (at == std::string::npos || !path.ends_with(kBehind)) return {};
  const char* const first = path.data() + at + kBefore.size();
  const char* const last = path.data() + path.size() - kBehind.size();
  unsigned shard = 0;
  const auto [end, error] = std::from_chars(first, last, shard);
  if (error != std::errc() || end != last || shard == 0 || shard >= kMostShards) return {};
  return path.substr(0, at);
}

std::set<std::string> unfinished_outputs(const std::string& directory) {
  const std::string ending = Journal::path_of("");
  std::set<std::string> outputs;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::string path = entry.path().string();
    if (path.ends_with(ending)) {
      path.resize(path.size() - ending.size());
    } else if (!output_of_shard(path)) {
      continue;
    }
    outputs.insert(output_of_shard(path).value_or(path));
  }
  return outputs;
}

std::vector<unsigned> shards_beside(const std::string& output) {
  namespace fs = std::filesystem;
  std::vector<unsigned> shards;
  for (unsigned shard = 1; shard < kMostShards; ++shard) {
    const std::string path = shard_path(output, shard);
    if (fs::exists(path) || fs::exists(Journal::path_of(path))) shards.push_back(shard);
  }
  return shards;
}

}  // namespace wherry::merge
