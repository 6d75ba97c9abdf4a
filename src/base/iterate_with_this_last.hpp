// SPDX-License-Identifier: Apache-2.0
//
// A preloaded library comes before all others in the loader's list. AddressSanitizer refuses to start a program if its
// own runtime, which is a library for gcc, is not first. The runtime must come before libraries that allocate. Ours do
// not allocate, so they show themselves last in the list that they pass to others.
#pragma once

#include <link.h>

#include <cstddef>

// The linker's name for the start of the object that it links.
// NOLINTNEXTLINE(bugprone-reserved-identifier, bugprone-dynamic-static-initializers)
extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace wherry {

/// As dl_iterate_phdr, but shows this library last. `next` is the dl_iterate_phdr that the program would call without
/// this library.
///
/// Callbacks rely on the loader's lock, which `next` holds during each call. So the callback for this library is called
/// within its turn of the first iteration, after a second iteration has shown the libraries that follow. The lock is
/// recursive.
template <typename Next>
int iterate_with_this_last(Next next, int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  struct Iteration {
    Next& next;
    int (*callback)(dl_phdr_info*, std::size_t, void*);
    void* data;
    std::size_t before_own = 0;  ///< libraries before this one
    std::size_t skipped = 0;     ///< libraries skipped by the second iteration
    bool has_own = false;
    int result = 0;
  };
  Iteration iteration{.next = next, .callback = callback, .data = data};
  const auto pass_rest = [](dl_phdr_info* info, std::size_t size, void* to) {
    auto& all = *static_cast<Iteration*>(to);
    if (all.skipped <= all.before_own) {
      ++all.skipped;
      return 0;
    }
    return all.callback(info, size, all.data);
  };
  const auto pass_on = [](dl_phdr_info* info, std::size_t size, void* to) {
    auto& all = *static_cast<Iteration*>(to);
    if (info->dlpi_addr != reinterpret_cast<ElfW(Addr)>(&__ehdr_start)) {
      ++all.before_own;
      return all.callback(info, size, all.data);
    }
    all.has_own = true;
    all.result = all.next(decltype(pass_rest){}, to);
    if (all.result == 0) all.result = all.callback(info, size, all.data);
    return 1;  // ends the first iteration
  };
  const int result = next(pass_on, &iteration);
  return iteration.has_own ? iteration.result : result;
}

}  // namespace wherry
