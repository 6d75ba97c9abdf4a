// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <csignal>

namespace wherry::file {

/// Reports a broken lease to one thread, which blocks the signal and waits for it. A standard signal stays pending,
/// however many leases break. The queue of a real-time signal can overflow: the kernel then sends SIGIO, which ends the
/// process.
constexpr int kLeaseSignal = SIGURG;

/// Takes a lease (F_RDLCK, F_WRLCK) on an open file description. False: the kernel gives none.
/// @param thread  gets kLeaseSignal when an open waits for the end of the lease, or has failed because of it
bool take_lease(int descriptor, int type, pid_t thread);

/// Whether only this kernel changes the files of a file system. FUSE and NFS support leases too, but report no changes
/// that are made elsewhere.
bool is_local(int descriptor);

/// Whether nobody has the file open for writing. Takes a lease for a moment, so an open with O_NONBLOCK for writing may
/// fail meanwhile. False if the kernel does not tell: the descriptor can write, or the file is another user's.
bool has_no_writer(int descriptor);

}  // namespace wherry::file
