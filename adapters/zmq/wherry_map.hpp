// SPDX-License-Identifier: Apache-2.0
//
// Which tcp and ipc endpoints are carried over Wherry: those that WHERRY_ZMQ_MAP names.
#pragma once

#include <string_view>

namespace zmq {

/// WHERRY_ZMQ_MAP at the first call; empty if it is unset. A program may change its environment later, in a thread that
/// is not libzmq's.
std::string_view wherry_map_of_environment();

/// Whether `endpoint` begins with one of the comma-separated items of `map`, and the item ends where a part of the
/// endpoint does. So tcp://127.0.0.1 and tcp://127.0.0.1:2000 match tcp://127.0.0.1:2000, and tcp://127.0.0.1:2 does
/// not. tcp://localhost stands for both addresses of the loopback interface. tcp://[::ffff:127.0.0.1]:2000 is
/// tcp://127.0.0.1:2000.
bool wherry_maps(std::string_view map, std::string_view endpoint);

}  // namespace zmq
