// SPDX-License-Identifier: Apache-2.0
//
// Where a process is, as far as it matters for meeting another one over Wherry.
#pragma once

#include <cstdint>

namespace zmq {

/// A hash of the machine (own_machine) and of the job (WHERRY_JOB). Two processes for which it differs cannot meet over
/// Wherry.
std::uint32_t wherry_place();

}  // namespace zmq
