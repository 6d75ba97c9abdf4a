// SPDX-License-Identifier: Apache-2.0
//
// Places large messages of a process that uses Wherry. libzmq's own sources include this header, so it is
// C++11 and includes no header of Wherry.
#ifndef WHERRY_ZMQ_MESSAGE_HPP
#define WHERRY_ZMQ_MESSAGE_HPP

#include <cstddef>

namespace zmq {

class msg_t;

/// Shorter messages use malloc: a few faults are cheaper than a look.
constexpr std::size_t wherry_large = std::size_t{128} << 10;

bool wherry_init_large(msg_t& msg, std::size_t size);

/// Makes `msg` a message of `size` bytes, as msg_t::init_size does, if it is large and this process uses Wherry.
/// Otherwise returns false and leaves `msg` as it was.
inline bool wherry_init_size(msg_t& msg, std::size_t size) {
  return size >= wherry_large && wherry_init_large(msg, size);
}

}  // namespace zmq

#endif
