// SPDX-License-Identifier: Apache-2.0
// The options that all questions have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::bench {

struct Options {
  std::vector<std::uint64_t> sizes{};  ///< bytes of one message
  std::uint64_t bytes = 1 << 30;       ///< payload of one sample, at most
  double seconds = 0.5;                ///< time of one sample, at most, roughly
  int samples = 5;
  std::vector<std::uint32_t> senders{1};
  std::vector<std::string> modes{"handover", "touched"};
  std::vector<std::string> systems{};  ///< empty: all that are found
  std::vector<int> cores{};            ///< to run the receiver and the sender on
  std::uint64_t seed = 1;
  bool smoke = false;
};

}  // namespace wherry::bench
