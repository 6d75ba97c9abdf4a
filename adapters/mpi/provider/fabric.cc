// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric.hpp"
#include "completion_queue.hpp"
#include "counter.hpp"
#include "domain.hpp"
#include "event_queue.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

int close(fid_t handle) {
  Fabric& fabric = Fabric::of(handle);
  if (fabric.users > 0) return -FI_EBUSY;
  delete &fabric;
  return 0;
}

fi_ops object_calls = closable(close);

int domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags, void* context) {
  return flags == 0 ? Domain::open(fabric, info, domain, context) : -FI_EBADFLAGS;
}

int eq_open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context) {
  return EventQueue::open(*static_cast<Fabric*>(fabric), attributes, context, queue);
}

int try_wait(fid_t object) {
  switch (object->fclass) {
    case FI_CLASS_CQ:
      return CompletionQueue::of(object).try_wait();
    case FI_CLASS_CNTR:
      return Counter::of(object).try_wait();
    case FI_CLASS_EQ:
      return EventQueue::of(object).try_wait();
    default:
      return -FI_EINVAL;
  }
}

// Tries all objects, so that each of their descriptors may be waited for next time.
int trywait(fid_fabric* /*fabric*/, fid** objects, int count) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    if (const int status = try_wait(objects[i]); status != 0) result = status;
  }
  return result;
}

fi_ops_fabric fabric_operations() {
  fi_ops_fabric result{};
  result.size = sizeof(fi_ops_fabric);
  result.domain = Domain::open;
  result.passive_ep = not_served<int>;
  result.eq_open = eq_open;
  result.wait_open = not_served<int>;
  result.trywait = trywait;
  result.domain2 = domain2;
  return result;
}
fi_ops_fabric fabric_calls = fabric_operations();

}  // namespace

Fabric::Fabric(std::uint32_t version, void* context)
    : fid_fabric{{FI_CLASS_FABRIC, context, &object_calls}, &fabric_calls, version} {}

Fabric& Fabric::of(fid_t handle) { return object_of<Fabric, fid_fabric>(handle); }

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return guarded([&] {
    fabric::require_mapping("open the MPI provider");
    *fabric = new Fabric(attributes->api_version, context);
    return 0;
  });
}

}  // namespace wherry::mpi
