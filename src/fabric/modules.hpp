// SPDX-License-Identifier: Apache-2.0
// Loads fabrics that need a third-party library. They are modules, loaded when their name is first used. May include:
// base.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fabric/fabric.hpp"

// Creates the fabric. Defined in the module lib/wherry/ofi/libwherry-ofi.so, or in a program that links it. The caller
// owns the result.
extern "C" __attribute__((weak, visibility("default"))) wherry::fabric::Fabric* wherry_fabric_ofi();

namespace wherry::fabric {

inline constexpr std::string_view kModuleName = "ofi";

/// Loads a module. Null if there is no module of that name. Throws Error(ENOTSUP) if it is not installed or cannot be
/// loaded.
std::unique_ptr<Fabric> load_module(std::string_view name);
/// Loads a module from a file. Throws as load_module.
std::unique_ptr<Fabric> load_module_from(const std::string& file);

}  // namespace wherry::fabric
