// SPDX-License-Identifier: Apache-2.0
// Memory that one side exposes, for the other to reach at any time. An optional part of the contract that fabric.hpp
// summarizes. May include: base, memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <wherry/address.hpp>

#include "memory/region.hpp"

namespace wherry::fabric {

/// The exposed memory of one connection. Thread-safe. Valid as long as the connection.
class Exposure {
 public:
  Exposure() = default;
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;
  virtual ~Exposure() = default;

  /// Exposes `memory`: whole pages, which the caller keeps. Peers reach it by a key that the layer above sends to them.
  /// The same memory may be exposed any number of times, and remains the same memory. The caller may free it at any
  /// time; the exposed pages live on. Other threads must not write it during this call. Throws Error: ENOTSUP if the
  /// offer did not set `exposes`, or if the fabric cannot; EINVAL; EFAULT if a page is not mapped; ENOMEM.
  virtual std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) = 0;
  /// Returns the first `bytes` of the memory that the peer has exposed as `key`. Else returns null and sets `error`:
  /// ENXIO if the peer has exposed no such memory. May have to map memory.
  virtual std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) = 0;

 protected:
  /// Throws Error(ENOTSUP), for a side whose offer did not set `exposes`.
  [[noreturn]] static void refuse(const Peer& peer);
};

}  // namespace wherry::fabric
