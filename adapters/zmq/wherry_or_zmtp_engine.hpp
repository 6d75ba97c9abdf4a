// SPDX-License-Identifier: Apache-2.0
//
// Makes the engine of a tcp or ipc connection. libzmq's own sources include this header, so it is C++11
// and includes no header of Wherry.
#ifndef WHERRY_ZMQ_OR_ZMTP_ENGINE_HPP
#define WHERRY_ZMQ_OR_ZMTP_ENGINE_HPP

#include <endpoint.hpp>
#include <fd.hpp>
#include <options.hpp>

namespace zmq {

struct i_engine;

/// Returns an engine for the connected socket `fd`, which it owns. If WHERRY_ZMQ_MAP names one of the two endpoints, it
/// is one that moves the connection to a stream of Wherry if the peer can, too; otherwise libzmq's own.
i_engine* wherry_or_zmtp_engine(fd_t fd, const options_t& options, const endpoint_uri_pair_t& endpoints);

}  // namespace zmq

#endif
