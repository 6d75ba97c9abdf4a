// SPDX-License-Identifier: Apache-2.0
//
// The place of a process: it decides with which others it can meet over Wherry.
#pragma once

#include <cstdint>

namespace zmq {

/// Hash of the machine (own_machine) and of the job (WHERRY_JOB). Two processes with different hashes cannot meet over
/// Wherry.
std::uint32_t wherry_place();

}  // namespace zmq
