// SPDX-License-Identifier: Apache-2.0
// Fabrics that need a library: they are modules, loaded when they are first asked for by name. May include: base.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fabric/fabric.hpp"

// Of the module lib/wherry/ofi/libwherry-ofi.so, or of a program that has it linked in. The caller owns the result.
extern "C" __attribute__((weak, visibility("default"))) wherry::fabric::Fabric* wherry_fabric_ofi();

namespace wherry::fabric {

inline constexpr std::string_view kModuleName = "ofi";

/// Null: there is no module of that name. Throws Error(ENOTSUP) if it is not installed or cannot be loaded.
std::unique_ptr<Fabric> load_module(std::string_view name);
/// The same of a file.
std::unique_ptr<Fabric> load_module_from(const std::string& file);

}  // namespace wherry::fabric
