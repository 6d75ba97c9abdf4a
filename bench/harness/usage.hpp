// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace wherry::bench {

/// CPU seconds, user and system, and context switches.
struct Usage {
  double cpu = 0;
  std::uint64_t switches = 0;

  Usage operator-(const Usage& before) const { return {cpu - before.cpu, switches - before.switches}; }
};

/// Of this process with all its threads (RUSAGE_SELF), of this thread (RUSAGE_THREAD), or of all its children that it
/// has waited for (RUSAGE_CHILDREN).
inline Usage usage_now(int whose) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  rusage usage{};
  ::getrusage(whose, &usage);
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

}  // namespace wherry::bench
