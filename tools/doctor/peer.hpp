// SPDX-License-Identifier: Apache-2.0
//
// `wherry doctor --peer ADDRESS`: why a connect to that address would be refused.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wherry::tools::doctor {

struct PeerDiagnosis {
  struct Other {
    std::string found;   ///< a listener on that node and port that is not reached
    std::string advice;  ///< what to change to reach it
  };

  std::string address;
  bool reachable = false;
  std::string place;          ///< user, job and network namespace of this process
  std::int64_t process = 0;   ///< the listener's; 0: unknown, or in another pid namespace
  std::string found;          ///< what became of the attempt
  std::string advice;         ///< what to do; may be empty
  std::vector<Other> others;  ///< if it is not reachable; nearest first

  static constexpr std::size_t kMostOthers = 10;

  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] nlohmann::json to_json() const;
};

/// Connects and leaves without a word: the listener drops that connector, and its program does not see it. Throws Error
/// for an address that no connect accepts, or one of a fabric without processes (EINVAL).
PeerDiagnosis diagnose_peer(const std::string& address);

}  // namespace wherry::tools::doctor
