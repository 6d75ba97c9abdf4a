// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Locks at a host's server. They end with the connection. If it breaks while locks are held, they are lost: all later
/// calls return ESTALE, both with the owner's handle and with the file's.
///
/// Functions return 0 or an errno value. Threads and blocking as in Host.
class HostLocks {
 public:
  using Handle = HostLink::Handle;
  struct Opened {
    int error = 0;
    Handle handle = 0;
  };

  explicit HostLocks(HostLink& link) : link_(link) {}

  /// Makes a lock owner on an open file. `flags`: of layout::kFileLock... Its handle is for `set`, `get` and
  /// Host::close. `held` is updated with every lock, and must belong to this owner alone. If the connection breaks
  /// while no locks are held, only this handle becomes ESTALE. From now on the file's data goes through the server, so
  /// that no data is written after a lock is lost.
  /// @param process  a number by which the server recognizes the owner on other files; 0: none
  Opened open(Handle file, std::uint32_t flags, std::shared_ptr<HeldLocks> held, std::uint64_t process = 0);
  /// Never waits. EAGAIN: another owner's lock conflicts. EDEADLK: with kFileLockWaits, the process waits for itself.
  int set(Handle locks, std::uint32_t flags, const layout::FileLock& lock);
  /// A lock that conflicts with `lock`, except this owner's; of type `none` if there is none. Also for a file's own
  /// handle.
  int get(Handle handle, layout::FileLock& lock);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
