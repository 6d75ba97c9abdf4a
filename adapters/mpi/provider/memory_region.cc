// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "domain.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

int bind(fid_t /*region*/, fid_t /*other*/, std::uint64_t /*flags*/) { return 0; }

int control(fid_t /*region*/, int command, void* /*argument*/) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

fi_ops operations() {
  fi_ops result = closable(MemoryRegion::close);
  result.bind = bind;
  result.control = control;
  return result;
}

fi_ops object_calls = operations();

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t own_key)
    : fid_mr{{FI_CLASS_MR, attributes.context, &object_calls}, nullptr, own_key}, domain_(domain) {
  mem_desc = this;
  ++domain_.users;
}

int MemoryRegion::open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** region) {
  if (flags != 0) return -FI_EBADFLAGS;
  return guarded([&] {
    const std::lock_guard guard(domain.lock());
    const auto [place, is_new] = domain.regions.try_emplace(attributes.requested_key, nullptr);
    if (!is_new) return -FI_ENOKEY;
    place->second = new MemoryRegion(domain, attributes, attributes.requested_key);
    *region = place->second;
    return 0;
  });
}

int MemoryRegion::close(fid_t handle) {
  auto& region = object_of<MemoryRegion, fid_mr>(handle);
  Domain& domain = region.domain_;
  const std::lock_guard guard(domain.lock());
  domain.regions.erase(region.key);
  --domain.users;
  delete &region;
  return 0;
}

}  // namespace wherry::mpi
