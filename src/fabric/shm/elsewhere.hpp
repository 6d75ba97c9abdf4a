// SPDX-License-Identifier: Apache-2.0
// Looks for listeners that this process cannot reach, for the advice of a connect that is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::fabric::shm {

/// A listener on the wanted node and port that differs from what a connect looks for.
struct ListenerElsewhere {
  std::string user;           ///< another user's number; empty: this process's own
  std::string job;            ///< another job; empty: this process's own
  std::string process;        ///< a process of another network namespace; empty: this thread's own
  std::uint64_t network = 0;  ///< the number of that namespace; 0: unknown

  /// " of user 5 in job 'b' in network namespace 4026532276 (that of process 77)": how it differs.
  [[nodiscard]] std::string difference() const;
  /// "run both as one user, set WHERRY_JOB=b": what makes the two meet.
  [[nodiscard]] std::string remedy() const;
};

/// All that the kernel shows, those with the fewest differences first. Reads the sockets of each network namespace of
/// the processes in /proc: 10 us a process, or more. Permission to trace these processes is not needed.
std::vector<ListenerElsewhere> listeners_elsewhere(std::uint16_t node, std::uint16_t port);

/// The first of them for the advice of a refused connect: empty if there is none. A connect that is tried again and
/// again gets the latest finding; a new look is made a second later at the earliest, then less often.
std::vector<ListenerElsewhere> recent_listener_elsewhere(std::uint16_t node, std::uint16_t port);

/// "user 0, job 'default', network namespace 4026531833": where a connect of the calling thread looks for listeners.
std::string place_of_search();

}  // namespace wherry::fabric::shm
