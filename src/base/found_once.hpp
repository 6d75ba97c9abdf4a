// SPDX-License-Identifier: Apache-2.0
// A value that a process computes once, such as a property of its machine.
#pragma once

#include <atomic>
#include <memory>

namespace wherry {

/// Replaces a static local whose initialiser takes long. With a static local a thread waits for another one that
/// initialises it, and a child forked meanwhile waits for ever: it has the guard, but not that thread. Here no thread
/// waits. Several threads that ask at the same time each compute the value, and the first result is kept. So `find`
/// must have no effect that may not happen twice. For static objects: the value is never destroyed, because threads may
/// outlive main(). From any thread.
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
    // FOUND-ONCE: publishes this value, unless another thread was first.
    if (value_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *known;
  }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace wherry
