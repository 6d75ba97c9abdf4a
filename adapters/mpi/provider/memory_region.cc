// SPDX-License-Identifier: Apache-2.0
#include "memory_region.hpp"

#include <bit>
#include <cstring>
#include <mutex>

#include "counter.hpp"
#include "domain.hpp"
#include "info.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

int bind(fid_t region, fid_t other, std::uint64_t flags) { return MemoryRegion::of(region).bind(other, flags); }

int close(fid_t region) { return MemoryRegion::of(region).close(); }

int control(fid_t region, int command, void* argument) {
  if (command == FI_GET_RAW_MR) return MemoryRegion::of(region).raw(*static_cast<struct fi_mr_raw_attr*>(argument));
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

fi_ops operations() {
  fi_ops result = closable(close);
  result.bind = bind;
  result.control = control;
  return result;
}

fi_ops object_calls = operations();

// Sets the key, and the address by which a peer names the first byte: fi_mr(3), FI_MR_BASIC.
void place(MemoryRegion& region, Domain& domain, const fi_mr_attr& attributes) {
  region.Region::key = domain.is_basic() ? domain.regions.free_key() : attributes.requested_key;
  region.fid_mr::key = region.Region::key;
  region.first = domain.is_basic() ? std::bit_cast<std::uintptr_t>(region.memory) : 0;
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const fi_mr_attr& attributes)
    : fid_mr{{FI_CLASS_MR, attributes.context, &object_calls}, nullptr, 0}, domain_(domain) {
  mem_desc = this;
  if (attributes.iov_count > 0) {
    memory = attributes.mr_iov[0].iov_base;
    bytes = attributes.mr_iov[0].iov_len;
  }
  readable = (attributes.access & FI_REMOTE_READ) != 0;
  writable = (attributes.access & FI_REMOTE_WRITE) != 0;
  place(*this, domain, attributes);
  ++domain.users;
}

MemoryRegion::~MemoryRegion() {
  if (writes_ != nullptr) --writes_->users;
  --domain_.users;
}

MemoryRegion& MemoryRegion::of(fid_t handle) { return object_of<MemoryRegion, fid_mr>(handle); }

int MemoryRegion::open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** region) {
  if ((flags & ~std::uint64_t{FI_RMA_EVENT}) != 0) return -FI_EBADFLAGS;
  if (attributes.iov_count > kMostRegionRanges || attributes.offset != 0) return -FI_EINVAL;
  return guarded([&] {
    const std::lock_guard guard(domain.lock());
    auto made = std::make_unique<MemoryRegion>(domain, attributes);
    if (!domain.regions.add(*made)) return -FI_ENOKEY;
    *region = made.release();
    return 0;
  });
}

// Accepts an endpoint, too, although regions belong to domains.
int MemoryRegion::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass == FI_CLASS_EP) return 0;
  if (other->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  if (flags != FI_REMOTE_WRITE) return -FI_EBADFLAGS;
  const std::lock_guard guard(domain_.lock());
  if (writes_ != nullptr) return -FI_EINVAL;
  writes_ = &Counter::of(other);
  ++writes_->users;
  return 0;
}

int MemoryRegion::raw(struct fi_mr_raw_attr& attributes) const {
  const std::size_t room = *attributes.key_size;
  *attributes.key_size = sizeof(Region::key);
  if (room < sizeof(Region::key)) return -FI_ETOOSMALL;
  std::memcpy(attributes.raw_key, &(Region::key), sizeof(Region::key));
  *attributes.base_addr = first;
  return 0;
}

int MemoryRegion::close() {
  return guarded([&] {
    Domain& domain = domain_;
    const std::lock_guard guard(domain.lock());
    for (Messenger* messenger : domain.messengers) messenger->revoke(*this);
    domain.regions.remove(*this);
    delete this;
    return 0;
  });
}

void MemoryRegion::on_write() {
  if (writes_ != nullptr) writes_->count({});
}

}  // namespace wherry::mpi
