// SPDX-License-Identifier: Apache-2.0
//
// A library that is preloaded stands before all others in the loader's list. AddressSanitizer refuses to start a
// program where its own runtime, which is a library for gcc, is not the first. It needs to be before libraries that
// allocate; ours do not, and stand last in the list that they let others see.
#pragma once

#include <link.h>

#include <cstddef>

// The linker's name for the beginning of what it is linked into.
// NOLINTNEXTLINE(bugprone-reserved-identifier, bugprone-dynamic-static-initializers)
extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace wherry {

/// Does what dl_iterate_phdr does, and shows this library last. `next` is the dl_iterate_phdr that the program would
/// call without this library.
template <typename Next>
int iterate_with_this_last(Next next, int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  struct Iteration {
    int (*callback)(dl_phdr_info*, std::size_t, void*);
    void* data;
    dl_phdr_info own{};
    bool has_own = false;
  };
  Iteration iteration{.callback = callback, .data = data};
  const auto pass_on = [](dl_phdr_info* info, std::size_t size, void* to) {
    auto& all = *static_cast<Iteration*>(to);
    const bool is_own = info->dlpi_addr == reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
    if (!is_own || size < sizeof(all.own)) return all.callback(info, size, all.data);
    all.own = *info;
    all.has_own = true;
    return 0;
  };
  const int result = next(pass_on, &iteration);
  return result != 0 || !iteration.has_own ? result : callback(&iteration.own, sizeof(iteration.own), data);
}

}  // namespace wherry
