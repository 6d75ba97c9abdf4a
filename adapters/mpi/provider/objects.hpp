// SPDX-License-Identifier: Apache-2.0
// libfabric's objects are C structures whose first member is a fid; ours derive from them.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <new>

#include <wherry/error.hpp>

#include "base/log.hpp"

namespace wherry::mpi {

/// The object of ours that this fid begins. Structure: fid_cq and the like.
template <class Object, class Structure>
Object& object_of(fid_t handle) {
  return *static_cast<Object*>(reinterpret_cast<Structure*>(handle));
}

/// For the entries of operation tables that this provider does not serve.
template <class Result, class... Arguments>
Result not_served(Arguments...) {
  return -FI_ENOSYS;
}

/// What `act` returns, or the error number of what it throws, which is logged: libfabric's callers learn a number only.
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
