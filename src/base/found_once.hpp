// SPDX-License-Identifier: Apache-2.0
// What a process finds out about its machine and then knows.
#pragma once

#include <atomic>
#include <memory>

namespace wherry {

/// In place of a static local that takes its time to initialise. There a thread waits for another that is at it, and a
/// child that is forked meanwhile waits for ever: it has the guard, but not that thread. Here no thread waits:
/// several that ask at the same time each find it out, and the first one's is kept. So `find` has to have no effect
/// that may not happen twice. For static objects: it is never destroyed, as threads may outlive main(). From any
/// thread.
template <class T>
class FoundOnce {
 public:
  constexpr FoundOnce() = default;
  FoundOnce(const FoundOnce&) = delete;
  FoundOnce& operator=(const FoundOnce&) = delete;

  template <class Find>
  T& get(const Find& find) {
    T* known = value_.load(std::memory_order_acquire);  // FOUND-ONCE
    if (known != nullptr) return *known;
    std::unique_ptr<T> fresh(new T(find()));
    // FOUND-ONCE: what was found here, or what the thread found that was first.
    if (value_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *known;
  }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace wherry
