// SPDX-License-Identifier: Apache-2.0
// The checks of `wherry doctor`. Each looks at one thing and leaves nothing behind. None throws for what it finds.
#pragma once

#include <string>

namespace wherry::tools::doctor {

enum class Verdict {
  ok,    ///< as Wherry wants it
  warn,  ///< Wherry works, but not as well, or not for everything
  fail,  ///< Wherry does not work
};

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string found;   ///< what is there
  std::string advice;  ///< what to change, and what it is good for; empty if nothing
};

// namespaces.cc
Finding check_reach();       ///< user, job and network namespace: processes that differ in one do not meet
Finding check_namespaces();  ///< the other namespaces, which decide what else works between two processes

// machine.cc
Finding check_kernel();         ///< the kernel's version
Finding check_cores();          ///< cores this process may use, and the control group's share of them
Finding check_memory();         ///< memory of the machine and of the control group
Finding check_descriptors();    ///< RLIMIT_NOFILE against what a connection needs
Finding check_file_sizes();     ///< RLIMIT_FSIZE, which holds for memory files, too
Finding check_locked_memory();  ///< RLIMIT_MEMLOCK
Finding check_huge_pages();     ///< transparent huge pages for shared memory

// interfaces.cc
Finding check_memory_files();  ///< memfd_create and its seals
Finding check_sockets();       ///< abstract Unix sockets, the credentials and descriptors they carry
Finding check_waiting();       ///< eventfd, ppoll, epoll and futex
Finding check_lending();       ///< pidfd_getfd between such processes
Finding check_peer_copy();     ///< process_vm_readv between processes that are not parent and child
Finding check_page_faults();   ///< userfaultfd, and whether for the faults of the kernel, too
Finding check_io_uring();      ///< io_uring_setup
Finding check_membarrier();    ///< membarrier

// streams.cc
Finding check_settings();  ///< every WHERRY_* variable
Finding check_stream();    ///< a stream of this process with itself, over the configured fabric

}  // namespace wherry::tools::doctor
