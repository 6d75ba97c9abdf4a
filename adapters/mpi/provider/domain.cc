// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include "address_vector.hpp"
#include "completion_queue.hpp"
#include "counter.hpp"
#include "endpoint.hpp"
#include "memory_region.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

int close(fid_t handle) {
  Domain& domain = Domain::of(handle);
  if (domain.users > 0) return -FI_EBUSY;
  delete &domain;
  return 0;
}

int bind(fid_t /*domain*/, fid_t other, std::uint64_t /*flags*/) {
  return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.bind = bind;
  return result;
}
fi_ops object_calls = object_operations();

int av_open(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context) {
  return AddressVector::open(*static_cast<Domain*>(domain), attributes, context, vector);
}

int cq_open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
  return CompletionQueue::open(*static_cast<Domain*>(domain), attributes, context, queue);
}

int cntr_open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context) {
  return Counter::open(*static_cast<Domain*>(domain), attributes, context, counter);
}

int endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  return Endpoint::open(*static_cast<Domain*>(domain), info, context, endpoint);
}

int endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags, void* context) {
  if (flags != 0) return -FI_EBADFLAGS;
  return Endpoint::open(*static_cast<Domain*>(domain), info, context, endpoint);
}

fi_ops_domain domain_operations() {
  fi_ops_domain result{};
  result.size = sizeof(fi_ops_domain);
  result.av_open = av_open;
  result.cq_open = cq_open;
  result.endpoint = endpoint;
  result.scalable_ep = not_served<int>;
  result.cntr_open = cntr_open;
  result.poll_open = not_served<int>;
  result.stx_ctx = not_served<int>;
  result.srx_ctx = not_served<int>;
  result.query_atomic = query_atomic;
  result.query_collective = not_served<int>;
  result.endpoint2 = endpoint2;
  return result;
}
fi_ops_domain domain_calls = domain_operations();

int regattr(fid_t domain, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** region) {
  return MemoryRegion::open(Domain::of(domain), *attributes, flags, region);
}

int regv(fid_t domain, const iovec* ranges, std::size_t count, std::uint64_t access, std::uint64_t offset,
         std::uint64_t key, std::uint64_t flags, fid_mr** region, void* context) {
  fi_mr_attr attributes{};
  attributes.mr_iov = ranges;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.offset = offset;
  attributes.requested_key = key;
  attributes.context = context;
  return regattr(domain, &attributes, flags, region);
}

int reg(fid_t domain, const void* buffer, std::size_t length, std::uint64_t access, std::uint64_t offset,
        std::uint64_t key, std::uint64_t flags, fid_mr** region, void* context) {
  const iovec range{const_cast<void*>(buffer), length};
  return regv(domain, &range, 1, access, offset, key, flags, region, context);
}

fi_ops_mr region_calls{sizeof(fi_ops_mr), reg, regv, regattr};

}  // namespace

Domain::Domain(Fabric& fabric, bool locks, bool basic, void* context)
    : fid_domain{{FI_CLASS_DOMAIN, context, &object_calls}, &domain_calls, &region_calls},
      fabric_(fabric),
      lock_(locks),
      basic_(basic) {
  ++fabric_.users;
}

Domain::~Domain() { --fabric_.users; }

Domain& Domain::of(fid_t handle) { return object_of<Domain, fid_domain>(handle); }

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  const fi_threading threading = info->domain_attr == nullptr ? FI_THREAD_SAFE : info->domain_attr->threading;
  const bool basic = info->domain_attr != nullptr && info->domain_attr->mr_mode == FI_MR_BASIC;
  return guarded([&] {
    *domain = new Domain(*static_cast<Fabric*>(fabric), threading != FI_THREAD_DOMAIN, basic, context);
    return 0;
  });
}

}  // namespace wherry::mpi
