// SPDX-License-Identifier: Apache-2.0
//
// The hook of the call that lists the libraries of a process.
#include <link.h>

#include "base/iterate_with_this_last.hpp"
#include "hook.hpp"
#include "next.hpp"

WHERRY_HOOK int dl_iterate_phdr(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  const auto next = [](auto... words) { return WHERRY_NEXT(dl_iterate_phdr, words...); };
  return wherry::iterate_with_this_last(next, callback, data);
}
