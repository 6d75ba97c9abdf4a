// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/found_once.hpp"
#include "base/refused_call.hpp"
#include "base/unique_fd.hpp"
#include "fabric/ofi/kernel_symbols.hpp"

namespace wherry::fabric::ofi {
namespace {

/// The version of the entry points that match the structures in the headers used for compiling. Newer libraries keep
/// the entry points of older ones under their versions.
constexpr const char* kInfoVersion = FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION <= 17 ? "FABRIC_1.3" : nullptr;

template <class Function>
void find(Function& function, void* library, const char* name, const char* version, const std::string& file) {
  void* symbol = version == nullptr ? ::dlsym(library, name) : ::dlvsym(library, name, version);
  if (symbol == nullptr) {
    throw Error(ENOTSUP, "load libfabric", file,
                std::string("it has no ") + name + "; install libfabric 1.17 or newer, or set WHERRY_LIBFABRIC");
  }
  function = reinterpret_cast<Function>(symbol);
}

Library load() {
  // libfabric's memory monitor replaces the C library's calls; no provider used here needs it.
  ::setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
  Library loaded{};
  loaded.file = config::text(config::Key::libfabric);
  void* const library = ::dlopen(loaded.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string reason = ::dlerror();
    check_descriptors(0, "load libfabric", loaded.file);
    throw Error(ENOTSUP, "load libfabric", loaded.file,
                reason + "; install libfabric1, or set WHERRY_LIBFABRIC to the library's path");
  }
  hide_kernel_symbols(library);
  find(loaded.getinfo, library, "fi_getinfo", kInfoVersion, loaded.file);
  find(loaded.freeinfo, library, "fi_freeinfo", kInfoVersion, loaded.file);
  find(loaded.dupinfo, library, "fi_dupinfo", kInfoVersion, loaded.file);
  find(loaded.fabric, library, "fi_fabric", nullptr, loaded.file);
  find(loaded.strerror, library, "fi_strerror", nullptr, loaded.file);
  find(loaded.version, library, "fi_version", nullptr, loaded.file);
  return loaded;
}

}  // namespace

void check_descriptors(int error, const char* operation, const std::string& what) {
  const auto is_lack = [](int code) { return code == EMFILE || code == ENFILE; };
  if (!is_lack(error)) {
    const UniqueFd probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    error = errno;
    if (probe.valid() || !is_lack(error)) return;
  }
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  throw Error(error, operation, what,
              advice_on(error, "open") + "; " + std::to_string(limit.rlim_cur) +
                  " may be open, and each connection to another host takes seven");
}

const Library& Library::instance() {
  static constinit FoundOnce<Library> library;
  return library.get(load);
}

}  // namespace wherry::fabric::ofi
