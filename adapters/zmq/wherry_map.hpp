// SPDX-License-Identifier: Apache-2.0
//
// Which endpoints of tcp and ipc are carried over Wherry: those that WHERRY_ZMQ_MAP names.
#pragma once

#include <string_view>

namespace zmq {

/// WHERRY_ZMQ_MAP as it was at the first call: a program may change its environment later, in a thread that is none of
/// libzmq's. Empty if it is unset.
std::string_view wherry_map_of_environment();

/// True if `endpoint` begins with one of the items of `map`, which commas separate, and the item ends where a part of
/// the endpoint does: tcp://127.0.0.1 and tcp://127.0.0.1:2000 are items for tcp://127.0.0.1:2000, tcp://127.0.0.1:2 is
/// none. tcp://localhost stands for both addresses of the loopback interface. tcp://[::ffff:127.0.0.1]:2000 is
/// tcp://127.0.0.1:2000.
bool wherry_maps(std::string_view map, std::string_view endpoint);

}  // namespace zmq
