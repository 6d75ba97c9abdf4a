// SPDX-License-Identifier: Apache-2.0
#include "wherry_place.hpp"

#include <cstdlib>
#include <string>

#include "base/machine.hpp"

namespace zmq {

std::uint32_t wherry_place() {
  const char* const job = std::getenv("WHERRY_JOB");
  const std::uint64_t hash = wherry::own_machine().hash(job == nullptr || *job == '\0' ? "default" : job);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace zmq
