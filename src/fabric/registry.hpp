// SPDX-License-Identifier: Apache-2.0
// Where a fabric's folder makes itself known. A folder NAME defines `void register_NAME(Registry&)`; its line
// `wherry_fabric(NAME)` in CMakeLists.txt puts the call into the generated fabric_list.cc. May include: base.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"

namespace wherry::fabric {

class Registry {
 public:
  /// Makes the decorator around `inner`; its name() is to be "PREFIX+" and the name of `inner`.
  using Decorate = std::function<std::unique_ptr<Fabric>(Fabric& inner)>;

  void add(std::unique_ptr<Fabric> fabric);
  /// `PREFIX+NAME` is then the fabric NAME as `decorate` wraps it; it may be wrapped again.
  void add_decorator(std::string prefix, Decorate decorate);

  /// Throws Error(EINVAL) that lists what there is. From any thread.
  Fabric& find(std::string_view name);
  [[nodiscard]] std::span<const std::string> names() const { return names_; }

 private:
  Fabric& find_locked(std::string_view name, std::string_view asked);
  [[nodiscard]] std::string list() const;

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Fabric>, std::less<>> fabrics_;  // decorated ones too, once made
  std::map<std::string, Decorate, std::less<>> decorators_;
  std::vector<std::string> names_;
};

/// Generated from src/fabric/CMakeLists.txt: calls register_NAME of every folder.
void register_all(Registry& registry);

}  // namespace wherry::fabric
