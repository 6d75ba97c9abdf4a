// SPDX-License-Identifier: Apache-2.0
// fi_fabric(3) and fi_domain(3): what everything else hangs on, and the one lock.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <vector>

#include "adapters/mpi/messenger/regions.hpp"
#include "lock.hpp"

namespace wherry::mpi {

class Fabric : public fid_fabric {
 public:
  Fabric(std::uint32_t api_version, void* context);
  static Fabric& of(fid_t handle);
  std::atomic<int> users{0};
};

class Domain : public fid_domain {
 public:
  Domain(Fabric& fabric, bool locks, bool basic, void* context);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  static Domain& of(fid_t handle);
  static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

  DomainLock& lock() { return lock_; }
  /// Whether regions are named as FI_MR_BASIC says: by the addresses that they have here, and keys of the provider's.
  [[nodiscard]] bool is_basic() const { return basic_; }
  std::atomic<int> users{0};           ///< objects that are open in it
  Regions regions;                     ///< locked
  std::vector<Messenger*> messengers;  ///< of its endpoints; locked

 private:
  Fabric& fabric_;
  DomainLock lock_;
  const bool basic_;
};

/// fi_prov_ini's entry: opens a fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

}  // namespace wherry::mpi
