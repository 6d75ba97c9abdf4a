// SPDX-License-Identifier: Apache-2.0
//
// Connects a session, and retries until it succeeds. libzmq's own sources include this header: C++11.
#ifndef WHERRY_ZMQ_CONNECTER_HPP
#define WHERRY_ZMQ_CONNECTER_HPP

#include <memory>

#include <stream_connecter_base.hpp>

namespace wherry {
class Connecting;
class Stream;
}  // namespace wherry

namespace zmq {

class wherry_connecter_t final : public stream_connecter_base_t {
 public:
  wherry_connecter_t(io_thread_t* io_thread, session_base_t* session, const options_t& options, address_t* address,
                     bool delayed_start);
  ~wherry_connecter_t() override;

 protected:
  void process_term(int linger) override;
  void out_event() override;
  void timer_event(int id) override;

 private:
  void start_connecting() override;
  void start_timer();
  void stop_timer();
  void give_up(int error);
  void attach(wherry::Stream stream);

  std::unique_ptr<wherry::Connecting> connecting_;
  bool timer_runs_ = false;
};

}  // namespace zmq

#endif
