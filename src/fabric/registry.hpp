// SPDX-License-Identifier: Apache-2.0
// The registry of fabrics. A fabric's folder NAME defines `void register_NAME(Registry&)`. Its line
// `wherry_fabric(NAME)` in CMakeLists.txt adds the call to the generated fabric_list.cc. May include: base.
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
  /// Creates a decorator of `inner`, whose name() must be "PREFIX+" followed by the name of `inner`.
  using Decorate = std::function<std::unique_ptr<Fabric>(Fabric& inner)>;

  void add(std::unique_ptr<Fabric> fabric);
  /// Defines `PREFIX+NAME` as the fabric NAME wrapped by `decorate`. NAME may itself be decorated.
  void add_decorator(std::string prefix, Decorate decorate);

  /// Returns the fabric. Throws Error(EINVAL) that lists all fabrics. Thread-safe.
  Fabric& find(std::string_view name);
  [[nodiscard]] std::span<const std::string> names() const { return names_; }

 private:
  Fabric& find_locked(std::string_view name, std::string_view asked);
  [[nodiscard]] std::string list() const;

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Fabric>, std::less<>> fabrics_;  // includes decorated ones, once created
  std::map<std::string, Decorate, std::less<>> decorators_;
  std::vector<std::string> names_;
};

/// Generated from src/fabric/CMakeLists.txt: calls register_NAME of every folder.
void register_all(Registry& registry);

}  // namespace wherry::fabric
