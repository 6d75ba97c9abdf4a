// SPDX-License-Identifier: Apache-2.0
//
// The endpoint of a wherry:// socket as libzmq handles it. libzmq's own sources include this header: C++11, and nothing
// of Wherry's.
#ifndef WHERRY_ZMQ_ADDRESS_HPP
#define WHERRY_ZMQ_ADDRESS_HPP

#include <string>

namespace zmq {

class wherry_address_t {
 public:
  /// 0 if `name`, what follows wherry://, is a NODE:PORT to connect to; else -1 with errno EINVAL.
  static int check(const std::string& name);

  /// Turns the names that SCIF's extension of ZeroMQ used, scif://PORT and scif://NODE:PORT, into ours. Leaves any
  /// other protocol alone. Messages that are made from now on lie in the memory that is meant for ours
  /// (wherry_memory.hpp): a program may make hundreds before it has a connection.
  static void translate(std::string& protocol, std::string& path);
  /// What `bind` to `path` was remembered by: the node of this process in place of `*`. For zmq_unbind.
  static std::string bound(const std::string& path);
};

}  // namespace zmq

#endif
