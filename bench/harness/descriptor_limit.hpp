// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

namespace wherry::bench {

/// Lets this process open as many descriptors as its user may: a thousand connections need more than the usual limit.
inline void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace wherry::bench
