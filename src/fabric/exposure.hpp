// SPDX-License-Identifier: Apache-2.0
// Memory that either side exposes, for the other to reach at any time: an optional part of the contract that fabric.hpp
// sums up. May include: base, memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <wherry/address.hpp>

#include "memory/region.hpp"

namespace wherry::fabric {

/// Of one connection. All calls from any thread, while the connection lives.
class Exposure {
 public:
  Exposure() = default;
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;
  virtual ~Exposure() = default;

  /// Exposes `memory`, whole pages that the caller already has and keeps; peers reach it by keys that the layer above
  /// tells them. The same memory may be exposed any number of times, and is one and the same. The caller may free it at
  /// any time: the exposed pages live on. Other threads must not write it during this call. Throws Error: ENOTSUP if
  /// the offer did not say so, or the fabric cannot; EINVAL; EFAULT if some of it is not there; ENOMEM.
  virtual std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) = 0;
  /// What the peer has exposed as `key`, and of that the first `bytes`. Null, and an errno value: ENXIO if it has
  /// exposed nothing like that on this connection. Costs a mapping, perhaps.
  virtual std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) = 0;

 protected:
  /// Throws Error(ENOTSUP): the offer of this side did not say that it exposes.
  [[noreturn]] static void refuse(const Peer& peer);
};

}  // namespace wherry::fabric
