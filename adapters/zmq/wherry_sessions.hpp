// SPDX-License-Identifier: Apache-2.0
//
// The connections of a bound port, and how they end. C++20: none of libzmq's own sources includes this.
//
// A program may unbind a port and close the socket while a reply is still under way. libzmq's session gives up its
// messages then: its own pipe is being terminated when the socket terminates the other end, which drops what was not
// read. So the sessions of a port are not asked to end before each connection has written what it had:
//
//   sessions --term--> drains --term--> drain, in each session's I/O thread --> engine
//      |                                  '--ack, once the engine has written all--'
//      '--term, after the acks or when ZMQ_LINGER is over--> session
//
// A command to an I/O thread arrives after those that were sent before it. So an engine that is asked by a drain knows
// of all messages that the program has sent before it unbound the port.
#pragma once

#include <io_object.hpp>
#include <own.hpp>

namespace zmq {

class wherry_engine_t;
class session_base_t;

/// Asks one engine to say when it has written what it had. Lives in the I/O thread of the engine's session, and is told
/// when the engine goes away.
class wherry_drain_t final : public own_t {
 public:
  /// @param engine  which takes the new object as its drain
  wherry_drain_t(io_thread_t* io_thread, const options_t& options, wherry_engine_t& engine);

  /// By the engine, which forgets this object: it has written all, and was asked to say so.
  void all_written();
  /// By the engine, which goes away.
  void engine_gone();

 private:
  void process_plug() override {}
  void process_term(int linger) override;

  wherry_engine_t* engine_;
  bool asked_ = false;
};

class wherry_sessions_t;

/// Owns the drains of a port. Lives in the I/O thread of the sessions' owner, and tells it when all drains are gone.
class wherry_drains_t final : public own_t {
 public:
  wherry_drains_t(io_thread_t* io_thread, const options_t& options, wherry_sessions_t& sessions)
      : own_t(io_thread, options), sessions_(sessions) {}
  void launch(wherry_drain_t* drain) { launch_child(drain); }

 private:
  void process_plug() override {}
  void process_destroy() override;

  wherry_sessions_t& sessions_;
};

/// Owns the sessions of a port and its drains.
class wherry_sessions_t final : public own_t, private io_object_t {
 public:
  /// @param io_thread  the listener's
  wherry_sessions_t(io_thread_t* io_thread, const options_t& options);

  /// @param session  whose engine is `engine`, not attached yet
  /// @param io_thread  the session's
  void launch(session_base_t* session, io_thread_t* io_thread, wherry_engine_t& engine);
  /// By the drains, which are gone but for their acknowledgement.
  void drained();

 private:
  void process_plug() override {}
  void process_term(int linger) override;
  void timer_event(int id) override;

  io_thread_t* const io_thread_;
  wherry_drains_t* drains_ = nullptr;  ///< none before the first session
  bool draining_ = false;              ///< the sessions will be asked to end afterwards
  int linger_ = 0;
};

}  // namespace zmq
