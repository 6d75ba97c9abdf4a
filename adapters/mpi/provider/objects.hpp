// SPDX-License-Identifier: Apache-2.0
// libfabric's objects are C structures whose first member is a fid; ours derive from them.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <new>

#include <wherry/error.hpp>

#include "base/log.hpp"

namespace wherry::mpi {

/// Returns the object of ours whose first member is this fid. Structure: its base, such as fid_cq.
template <class Object, class Structure>
Object& object_of(fid_t handle) {
  return *static_cast<Object*>(reinterpret_cast<Structure*>(handle));
}

/// Entry of an operation table for a call that this provider does not implement.
template <class Result, class... Arguments>
Result not_served(Arguments...) {
  return -FI_ENOSYS;
}

/// Returns the result of `act`, or the negative error number of its exception. Logs an Error, because libfabric's
/// callers get only the number.
template <class Act>
int guarded(Act&& act) noexcept {
  try {
    return act();
  } catch (const Error& error) {
    log::write(log::Level::error, error.what());
    return -error.code().value();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

/// The table of an object that can only be closed.
constexpr fi_ops closable(int (*close)(fid_t)) {
  fi_ops operations{};
  operations.size = sizeof(fi_ops);
  operations.close = close;
  operations.bind = not_served<int>;
  operations.control = not_served<int>;
  operations.ops_open = not_served<int>;
  operations.tostr = not_served<int>;
  operations.ops_set = not_served<int>;
  return operations;
}

}  // namespace wherry::mpi
