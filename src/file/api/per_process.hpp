// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fork_generation.hpp"

namespace wherry::file {

/// One object per process, made at first use and never destroyed. A forked child gets a new one, whatever other threads
/// of its parent had locked in the old one. For static storage.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  T& get() {
    const std::uint64_t process = fork_generation();
    Owned* now = owned_.load(std::memory_order_acquire);  // PER-PROCESS acquire: the object
    while (now == nullptr || now->process != process) {
      auto* const made = new Owned{.process = process, .object = {}};
      // PER-PROCESS release: the object
      if (owned_.compare_exchange_strong(now, made, std::memory_order_acq_rel)) return made->object;
      delete made;
    }
    return now->object;
  }

 private:
  struct Owned {
    std::uint64_t process;
    T object;
  };
  std::atomic<Owned*> owned_{nullptr};
};

}  // namespace wherry::file
