// SPDX-License-Identifier: Apache-2.0
// The checks of `wherry doctor`. Each checks one condition and leaves no trace. A check reports problems as findings
// and never throws for them.
#pragma once

#include <string>

namespace wherry::tools::doctor {

enum class Verdict {
  ok,    ///< as required
  warn,  ///< Wherry works, but is slower or limited
  fail,  ///< Wherry does not work
};

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string found;   ///< the current state
  std::string advice;  ///< what to change, and the benefit; empty: nothing to change
};

// namespaces.cc
Finding check_reach();       ///< user, job and network namespace: processes can connect only if all three are equal
Finding check_namespaces();  ///< the other namespaces, which decide on further features between two processes

// machine.cc
Finding check_kernel();         ///< kernel version
Finding check_cores();          ///< cores that this process may use, and the CPU limit of its control group
Finding check_memory();         ///< memory of the machine and of the control group
Finding check_descriptors();    ///< RLIMIT_NOFILE against what a connection needs
Finding check_file_sizes();     ///< RLIMIT_FSIZE, which also limits memory files
Finding check_locked_memory();  ///< RLIMIT_MEMLOCK
Finding check_huge_pages();     ///< transparent huge pages for shared memory

// interfaces.cc
Finding check_memory_files();  ///< memfd_create and its seals
Finding check_sockets();       ///< abstract Unix sockets, and the credentials and descriptors they carry
Finding check_waiting();       ///< eventfd, ppoll, epoll and futex
Finding check_lending();       ///< pidfd_getfd between processes that are not parent and child
Finding check_peer_copy();     ///< process_vm_readv between processes that are not parent and child
Finding check_page_faults();   ///< userfaultfd, also for page faults in the kernel
Finding check_io_uring();      ///< io_uring_setup
Finding check_membarrier();    ///< membarrier

// mounts.cc
Finding check_mounting();      ///< /dev/fuse, and the right to mount
Finding check_passthrough();   ///< kernel and rights for data that bypasses a mount's daemon
Finding check_mount_limits();  ///< whether a mount raises the kernel's limits of read-ahead and of changed pages
Finding check_leases();        ///< leases of files, on which delegations to mounts rest

// streams.cc
Finding check_settings();  ///< every WHERRY_* variable
Finding check_stream();    ///< a stream of this process with itself, over the configured fabric

}  // namespace wherry::tools::doctor
