// SPDX-License-Identifier: Apache-2.0
// fi_fabric(3), fi_domain(3) and fi_mr(3): what everything else hangs on, and the one lock.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <map>

#include "lock.hpp"

namespace wherry::mpi {

class Fabric : public fid_fabric {
 public:
  Fabric(std::uint32_t api_version, void* context);
  static Fabric& of(fid_t handle);
  std::atomic<int> users{0};
};

/// fi_mr(3): a key, and nothing else: no one-sided operation is offered.
class MemoryRegion;

class Domain : public fid_domain {
 public:
  Domain(Fabric& fabric, bool locks, void* context);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  static Domain& of(fid_t handle);
  static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

  DomainLock& lock() { return lock_; }
  std::atomic<int> users{0};                       ///< objects that are open in it
  std::map<std::uint64_t, MemoryRegion*> regions;  ///< by key; locked

 private:
  Fabric& fabric_;
  DomainLock lock_;
};

class MemoryRegion : public fid_mr {
 public:
  MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t own_key);
  static int open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** region);
  static int close(fid_t handle);

 private:
  Domain& domain_;
};

/// fi_prov_ini's entry: opens a fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

}  // namespace wherry::mpi
