// SPDX-License-Identifier: Apache-2.0
#include "outputs.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace wherry::root {
namespace {

struct Outputs {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::string> paths;
};

/// Never destroyed: files may be closed after static objects are destroyed.
Outputs& outputs() {
  static auto* const all = new Outputs;
  return *all;
}

}  // namespace

void note_output(const std::string& address, const std::string& name, const std::string& output) {
  if (output.empty()) return;
  const std::lock_guard lock(outputs().mutex);
  outputs().paths[{address, name}] = output;
}

std::string noted_output(const std::string& address, const std::string& name) {
  const std::lock_guard lock(outputs().mutex);
  const auto found = outputs().paths.find({address, name});
  return found == outputs().paths.end() ? "" : found->second;
}

}  // namespace wherry::root
