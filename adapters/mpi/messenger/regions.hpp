// SPDX-License-Identifier: Apache-2.0
// Memory of this process that peers may name by keys in one-sided operations: fi_mr(3). Uses no libfabric object.
//
// A peer names a key, an address and a length. The process that owns the memory decides what is allowed, before it
// touches anything. A peer learns where a region lies only after its request was allowed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"

namespace wherry::mpi {

struct Region {
  std::uint64_t key = 0;
  std::uint64_t first = 0;  ///< the address by which a peer names the first byte
  void* memory = nullptr;
  std::uint64_t bytes = 0;
  bool readable = false;
  bool writable = false;

  /// Called after a peer has changed some of the region.
  virtual void on_write() {}

 protected:
  ~Region() = default;
};

/// What an operation does to its target.
struct Access {
  bool reads = false;
  bool writes = false;
};

/// The regions of a domain, by key. The caller holds the domain's lock. Owns none of its regions.
class Regions {
 public:
  struct Found {
    int error = 0;  ///< 0, FI_ENOKEY, FI_EACCES or, beyond the region's end, FI_EINVAL; on an error nothing else is set
    Buffers buffers;  ///< empty ranges are left out: they need no key
    std::array<Region*, kMostRemoteRanges> regions{};

    static Found nothing(int why) {
      Found found;
      found.error = why;
      return found;
    }
  };

  /// Returns false if the key is in use.
  bool add(Region& region);
  void remove(const Region& region) { regions_.erase(region.key); }
  /// Returns a key that no region has.
  std::uint64_t free_key();
  /// At most kMostRemoteRanges ranges.
  [[nodiscard]] Found find(std::span<const RemoteRange> ranges, Access access) const;

 private:
  std::map<std::uint64_t, Region*> regions_;
  std::uint64_t last_key_ = 0;
};

}  // namespace wherry::mpi
