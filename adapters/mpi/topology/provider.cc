// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <dlfcn.h>

namespace wherry::topology {
namespace {

template <class Function>
Function* find(void* library, const char* name) noexcept {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// dlopen finds a loaded library by its soname, in any folder.
Provider::Provider() noexcept
    : library_(dlopen("libwherry-fi.so", RTLD_NOW | RTLD_NOLOAD)),
      self(find<wherry_fi_self_call>(library_, "wherry_fi_self")),
      topology(find<wherry_fi_topology_call>(library_, "wherry_fi_topology")),
      forget(find<wherry_fi_forget_call>(library_, "wherry_fi_forget")) {}

Provider::~Provider() {
  if (library_ != nullptr) dlclose(library_);
}

}  // namespace wherry::topology
