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
  /// `name` is what follows wherry://, that is NODE:PORT. Who binds may write `*` for either, and `wherry://*:*`.
  /// -1 with errno EINVAL otherwise.
  int resolve(const char* name, bool local);
  /// Always 0: libzmq asks its addresses so.
  int to_string(std::string& text) const;

  /// Turns the names that SCIF's extension of ZeroMQ used, scif://PORT and scif://NODE:PORT, into ours. Leaves any
  /// other protocol alone.
  static void translate(std::string& protocol, std::string& path);
  /// What `bind` to `path` was remembered by: the node of this process in place of `*`. For zmq_unbind.
  static std::string bound(const std::string& path);

 private:
  std::string text_;
};

}  // namespace zmq

#endif
