// SPDX-License-Identifier: Apache-2.0
//
// A port that a ZeroMQ socket is bound to. libzmq's own sources include this header: C++11.
#ifndef WHERRY_ZMQ_LISTENER_HPP
#define WHERRY_ZMQ_LISTENER_HPP

#include <memory>
#include <string>

#include <stream_listener_base.hpp>
#include "wherry_address.hpp"

namespace wherry {
class Listener;
class Stream;
}  // namespace wherry

namespace zmq {

class wherry_sessions_t;

class wherry_listener_t final : public stream_listener_base_t {
 public:
  wherry_listener_t(io_thread_t* io_thread, socket_base_t* socket, const options_t& options);
  ~wherry_listener_t() override;

  /// Listens on NODE:PORT. Returns -1 with errno on failure.
  int set_local_address(const char* name);

 protected:
  std::string get_socket_name(fd_t, socket_end_t) const override;
  void in_event() override;
  void timer_event(int id) override;
  int close() override;

 private:
  void attach(wherry::Stream stream);

  io_thread_t* const io_thread_;
  wherry_sessions_t* sessions_ = nullptr;  ///< null before the first connection
  std::unique_ptr<wherry::Listener> listener_;
  bool resting_ = false;
};

}  // namespace zmq

#endif
