// SPDX-License-Identifier: Apache-2.0
// fi_mr(3).
#pragma once

#include <rdma/fi_domain.h>

#include "adapters/mpi/messenger/regions.hpp"

namespace wherry::mpi {

class Counter;
class Domain;

class MemoryRegion final : public fid_mr, public Region {
 public:
  MemoryRegion(Domain& domain, const fi_mr_attr& attributes);
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  ~MemoryRegion();

  static MemoryRegion& of(fid_t handle);
  /// Returns 0 and sets *region, or returns a negative error number. The caller owns the memory and keeps it until
  /// close().
  static int open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** region);
  int bind(fid_t other, std::uint64_t flags);
  int raw(struct fi_mr_raw_attr& attributes) const;
  /// No peer's operation touches the memory afterwards.
  int close();

  void on_write() override;

 private:
  Domain& domain_;
  Counter* writes_ = nullptr;
};

}  // namespace wherry::mpi
