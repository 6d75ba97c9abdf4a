// SPDX-License-Identifier: Apache-2.0
// Searches for listeners that this process cannot reach, for the advice of a refused connect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::fabric::shm {

/// A listener on the wanted node and port, but of another user or job, or in another network namespace.
struct ListenerElsewhere {
  std::string user;           ///< number of another user; empty: this process's user
  std::string job;            ///< name of another job; empty: this process's job
  std::string process;        ///< a process in another network namespace; empty: this thread's namespace
  std::uint64_t network = 0;  ///< the number of that namespace; 0: unknown

  /// Describes the differences, as " of user 5 in job 'b' in network namespace 4026532276 (that of process 77)".
  [[nodiscard]] std::string difference() const;
  /// Tells how to reach the listener, as "run both sides as one user, set WHERRY_JOB=b".
  [[nodiscard]] std::string remedy() const;
};

/// Returns all such listeners that the kernel shows, those with the fewest differences first. Reads the sockets in each
/// network namespace of the processes in /proc, which takes at least 10 us per process. Needs no permission to trace
/// these processes.
std::vector<ListenerElsewhere> listeners_elsewhere(std::uint16_t node, std::uint16_t port);

/// Returns the first of them, for the advice of a refused connect; empty if there is none. A repeated connect gets the
/// latest result. The next search is made after a second at the earliest, and later ones at growing intervals.
std::vector<ListenerElsewhere> recent_listener_elsewhere(std::uint16_t node, std::uint16_t port);

/// Describes where a connect of the calling thread looks for listeners, as "user 0, job 'default', network namespace
/// 4026531833".
std::string place_of_search();

}  // namespace wherry::fabric::shm
