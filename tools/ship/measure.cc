// SPDX-License-Identifier: Apache-2.0
#include "ship/measure.hpp"

#include <filesystem>
#include <system_error>

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

void add(const fs::directory_entry& entry, Measure& sum) {
  std::error_code error;
  if (entry.is_symlink(error) || !entry.is_regular_file(error)) return;
  const std::uint64_t size = entry.file_size(error);
  if (error) return;
  ++sum.files;
  sum.bytes += size;
}

}  // namespace

Measure measure(const std::vector<std::string>& paths, bool recursive) {
  Measure sum;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::directory_entry root(path, error);
    if (error) continue;
    add(root, sum);
    if (!recursive || root.is_symlink(error) || !root.is_directory(error)) continue;
    fs::recursive_directory_iterator walk(root, fs::directory_options::skip_permission_denied, error);
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) add(*walk, sum);
  }
  return sum;
}

}  // namespace wherry::tools
