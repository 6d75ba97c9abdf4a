// SPDX-License-Identifier: Apache-2.0
// The endpoints of this process by their descriptors.
#pragma once

#include <memory>
#include <utility>

#include "adapters/scif/endpoint.hpp"
#include "adapters/scif/slot.hpp"

namespace wherry::scif {

/// An endpoint while a call uses it: it is not destroyed, nor its descriptor closed by scif_close.
class Use {
 public:
  Use() = default;
  Use(Slot& slot, Endpoint* endpoint) : slot_(&slot), endpoint_(endpoint) {}
  Use(Use&& other) noexcept : slot_(other.slot_), endpoint_(std::exchange(other.endpoint_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    std::swap(slot_, other.slot_);
    std::swap(endpoint_, other.endpoint_);
    return *this;
  }
  ~Use();
  explicit operator bool() const { return endpoint_ != nullptr; }
  Endpoint* operator->() const { return endpoint_; }
  Endpoint& operator*() const { return *endpoint_; }

 private:
  Slot* slot_ = nullptr;
  Endpoint* endpoint_ = nullptr;
};

/// Empty: there is no such endpoint. The number may be that of something else meanwhile (see is_current).
Use find(int descriptor);
/// Makes it known. What the number meant before is forgotten. Returns the descriptor.
int add(std::unique_ptr<Endpoint> endpoint);
/// Takes it out, wakes who sleeps in it and waits until nobody uses it. Null: there is none, any more.
std::unique_ptr<Endpoint> remove(int descriptor);
/// What is wrong with a descriptor that is no endpoint: EBADF or ENOTTY.
int what_is(int descriptor);

}  // namespace wherry::scif
