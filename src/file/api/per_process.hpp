// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fork_generation.hpp"

namespace wherry::file {

/// An object of each process's own, made when it is first asked for, and never destroyed: a forked child gets a new
/// one, whatever another thread of its parent held locked in the old. With static storage.
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
