// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Locks that a host's server has for its clients. They end with the connection. If it breaks while locks are held,
/// they are lost: ESTALE is the answer of all later calls by their owner's handle and by the file's.
///
/// Functions return 0 or an errno value. Threads and blocking as of Host.
class HostLocks {
 public:
  using Handle = HostLink::Handle;
  struct Opened {
    int error = 0;
    Handle handle = 0;
  };

  explicit HostLocks(HostLink& link) : link_(link) {}

  /// Makes an owner of locks on an open file; `flags`: of layout::kFileLock... Its handle is for the two calls below
  /// and Host::close. `held` is kept up to date, and is of this owner alone. Where a connection breaks and no locks are
  /// held, only this handle is ESTALE. From now on the file's data goes through the server, so that none is written
  /// after a lock that is lost.
  Opened open(Handle file, std::uint32_t flags, std::shared_ptr<HeldLocks> held);
  /// Never waits: EAGAIN where another owner is in the way.
  int set(Handle locks, std::uint32_t flags, const layout::FileLock& lock);
  /// What is in the way of a lock, if not this owner's: of type `none` if nothing is. Also of a file's own handle.
  int get(Handle handle, layout::FileLock& lock);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
