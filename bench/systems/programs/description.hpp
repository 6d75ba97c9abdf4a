// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/harness/system.hpp"

namespace wherry::bench {

/// What a peer's folder says of its program (peer.json there; README.md in this folder explains each entry).
struct Description {
  std::string name;
  std::string settings;
  std::string question;  ///< the only one of `wherry bench` that it answers; empty: any
  std::string missing;   ///< why the program was not built; the other members are then empty
  std::filesystem::path program;
  std::vector<Question> questions;
  std::uint32_t most_senders = 1;
  std::size_t least_size = 1;
  bool in_place = false;
};

/// Reads FOLDER/peer.json. Throws std::runtime_error, which names the file, when it is not as it should be.
Description read_description(const std::filesystem::path& folder);

}  // namespace wherry::bench
