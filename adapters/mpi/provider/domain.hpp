// SPDX-License-Identifier: Apache-2.0
// fi_fabric(3) and fi_domain(3). A domain has the one lock that all of its objects share.
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
  /// Whether regions follow FI_MR_BASIC: peers name virtual addresses, and the provider chooses the keys.
  [[nodiscard]] bool is_basic() const { return basic_; }
  std::atomic<int> users{0};           ///< open objects of the domain
  Regions regions;                     ///< guarded by lock()
  std::vector<Messenger*> messengers;  ///< of its endpoints; guarded by lock()

 private:
  Fabric& fabric_;
  DomainLock lock_;
  const bool basic_;
};

/// The provider's `fabric` entry (fi_prov_ini): opens a fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

}  // namespace wherry::mpi
