// SPDX-License-Identifier: Apache-2.0
// fi_prov_ini, which libfabric calls after it has loaded this library.
#include <dlfcn.h>
#include <rdma/providers/fi_prov.h>

#include "domain.hpp"
#include "info.hpp"

namespace wherry::mpi {
namespace {

// Version of the running libfabric, which skips providers of an older version than its caller asks for. It is found at
// run time: a link to libfabric would bind the oldest version of each function. RTLD_DEFAULT does not find a libfabric
// that, for example, a Python module has loaded.
std::uint32_t version_of_libfabric() {
  using Version = std::uint32_t (*)();
  auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "fi_version"));
  if (version != nullptr) return version();
  void* library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
  version = reinterpret_cast<Version>(dlsym(library, "fi_version"));
  const std::uint32_t result = version == nullptr ? FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) : version();
  dlclose(library);
  return result;
}

// Not const: libfabric writes into it.
fi_provider provider{};

}  // namespace
}  // namespace wherry::mpi

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  using namespace wherry::mpi;
  provider.version = FI_VERSION(0, 1);
  provider.fi_version = version_of_libfabric();
  provider.name = kProviderName;
  provider.getinfo = get_info;
  provider.fabric = open_fabric;
  provider.cleanup = [] {};
  return &provider;
}
