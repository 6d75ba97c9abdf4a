// SPDX-License-Identifier: Apache-2.0
#include "fabric/modules.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fabric {
namespace {

/// Returns where the module is: beside the library, program or module that contains this function. libzmq is one folder
/// deeper.
std::filesystem::path module_path() {
  constexpr std::string_view kPlace = "wherry/ofi/libwherry-ofi.so", kBesideModules = "ofi/libwherry-ofi.so";
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&load_module), &here) == 0 || here.dli_fname == nullptr) return kPlace;
  std::error_code ignored;
  const auto folder = std::filesystem::canonical(here.dli_fname, ignored).parent_path();
  const auto above = folder.parent_path();
  // The last two are for the Python package: pip's has it beside its own module, that of a build is in python/wherry.
  for (const auto& candidate : {folder / kPlace, above / kBesideModules, above.parent_path() / kBesideModules,
                                folder / "prefix/lib" / kPlace, above.parent_path() / "lib" / kPlace}) {
    if (std::filesystem::exists(candidate, ignored)) return candidate;
  }
  return above / "lib" / kPlace;
}

}  // namespace

std::unique_ptr<Fabric> load_module(std::string_view name) {
  if (name != kModuleName) return nullptr;
  if (&wherry_fabric_ofi != nullptr) return std::unique_ptr<Fabric>(wherry_fabric_ofi());
  return load_module_from(module_path().string());
}

std::unique_ptr<Fabric> load_module_from(const std::string& file) {
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const make = module == nullptr ? nullptr : ::dlsym(module, "wherry_fabric_ofi");
  if (make == nullptr) {
    const char* const reason = ::dlerror();
    throw Error(ENOTSUP, "load the fabric ofi", file,
                std::string(reason == nullptr ? "it is of another version" : reason) +
                    "; install libfabric-dev and libsodium-dev before Wherry is built");
  }
  return std::unique_ptr<Fabric>(reinterpret_cast<decltype(&wherry_fabric_ofi)>(make)());
}

}  // namespace wherry::fabric
