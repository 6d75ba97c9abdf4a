// SPDX-License-Identifier: Apache-2.0
//
// `wherry doctor --peer ADDRESS`: diagnoses why a connect to that address would be refused.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wherry::tools::doctor {

struct PeerDiagnosis {
  struct Other {
    std::string found;   ///< a listener on that node and port that cannot be reached
    std::string advice;  ///< what to change to reach it
  };

  std::string address;
  bool reachable = false;
  std::string place;          ///< user, job and network namespace of this process
  std::int64_t process = 0;   ///< process id of the listener; 0: unknown, or in another pid namespace
  std::string found;          ///< the result of the attempt
  std::string advice;         ///< what to do; may be empty
  std::vector<Other> others;  ///< listeners elsewhere, if the address is not reachable; nearest first

  static constexpr std::size_t kMostOthers = 10;

  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] nlohmann::json to_json() const;
};

/// Connects and disconnects without a message: the listener drops the connection, and its program does not see it.
/// Throws Error (EINVAL) for an address that no connect accepts, or whose fabric has no processes.
PeerDiagnosis diagnose_peer(const std::string& address);

}  // namespace wherry::tools::doctor
