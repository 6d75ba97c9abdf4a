// SPDX-License-Identifier: Apache-2.0
// The memory of this process that peers may name in one-sided operations, by keys: fi_mr(3). Knows no libfabric object.
//
// A peer names a key, an address and a length; what of that is allowed is decided here, in the process whose memory it
// is, before anything is touched. No peer is told where a region lies before its request was found to be allowed.
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

  /// A peer has changed some of it.
  virtual void on_write() {}

 protected:
  ~Region() = default;
};

/// What an operation does to a target.
struct Access {
  bool reads = false;
  bool writes = false;
};

/// Locked. Owns none of its regions.
class Regions {
 public:
  struct Found {
    int error = 0;    ///< FI_ENOKEY, FI_EACCES or, beyond the region's end, FI_EINVAL; nothing else is set then
    Buffers buffers;  ///< empty ranges are left out: they need no key
    std::array<Region*, kMostRemoteRanges> regions{};

    static Found nothing(int why) {
      Found found;
      found.error = why;
      return found;
    }
  };

  /// False: the key is taken.
  bool add(Region& region);
  void remove(const Region& region) { regions_.erase(region.key); }
  /// A key that no region has.
  std::uint64_t free_key();
  /// At most kMostRemoteRanges.
  [[nodiscard]] Found find(std::span<const RemoteRange> ranges, Access access) const;

 private:
  std::map<std::uint64_t, Region*> regions_;
  std::uint64_t last_key_ = 0;
};

}  // namespace wherry::mpi
