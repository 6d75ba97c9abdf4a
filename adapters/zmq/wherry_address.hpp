// SPDX-License-Identifier: Apache-2.0
//
// The endpoint of a wherry:// socket, as libzmq handles it. libzmq's own sources include this header, so it is C++11
// and includes no header of Wherry.
#ifndef WHERRY_ZMQ_ADDRESS_HPP
#define WHERRY_ZMQ_ADDRESS_HPP

#include <string>

namespace zmq {

class wherry_address_t {
 public:
  /// Returns 0 if `name`, the part after wherry://, is a NODE:PORT to connect to; else -1 with errno EINVAL.
  static int check(const std::string& name);

  /// Converts the names of SCIF's extension of ZeroMQ, scif://PORT and scif://NODE:PORT, to ours, and leaves other
  /// protocols alone. For ours, messages made from now on lie in the memory for them (wherry_memory.hpp): a program may
  /// make hundreds before it has a connection.
  static void translate(std::string& protocol, std::string& path);
  /// The name under which `bind` to `path` was recorded, for zmq_unbind: the node of this process instead of `*`.
  static std::string bound(const std::string& path);
};

}  // namespace zmq

#endif
