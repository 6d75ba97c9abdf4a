// SPDX-License-Identifier: Apache-2.0
//
// The connections of a bound port, and how they end. C++20: none of libzmq's own sources includes this.
//
// A program may unbind a port and close the socket while a reply is still under way. libzmq's session then gives up its
// messages: its own pipe is being terminated when the socket terminates the other end, which drops what was not read.
// So a session of a port is asked to end only after its connection has written what it had:
//
//   sessions --term--> gate --term--> drain, in the session's I/O thread --> engine
//      |                               '--ack, once the engine has written all--> gate
//      '--term, when the gate is gone or ZMQ_LINGER is over--> session
//
// A command to an I/O thread arrives after those that were sent before it. So an engine that a drain asks knows of all
// messages that the program has sent before it unbound the port.
#pragma once

#include <map>

#include <io_object.hpp>
#include <own.hpp>

namespace zmq {

class session_base_t;
class socket_base_t;
class wherry_engine_t;
class wherry_sessions_t;

/// Asks one engine to report when it has written what it had. Lives in the I/O thread of the engine's session. The
/// engine tells it of its own end.
class wherry_drain_t final : public own_t {
 public:
  /// @param engine  takes the new object as its drain
  wherry_drain_t(io_thread_t* io_thread, const options_t& options, wherry_engine_t& engine);

  /// Called by the engine once it has written everything, if this object has asked for that. The engine must not use
  /// this object afterwards.
  void all_written();
  /// Called by the engine's destructor. The engine must not use this object afterwards.
  void engine_gone();

 private:
  void process_plug() override {}
  void process_term(int linger) override;

  wherry_engine_t* engine_;
  bool asked_ = false;
};

/// Owns one drain, and ends when the drain has ended. Then it tells the owner of the sessions, in whose I/O thread it
/// lives.
class wherry_gate_t final : public own_t {
 public:
  wherry_gate_t(io_thread_t* io_thread, const options_t& options, wherry_sessions_t& sessions)
      : own_t(io_thread, options), sessions_(sessions) {}
  void launch(wherry_drain_t* drain) { launch_child(drain); }

 private:
  void process_plug() override {}
  void process_term_ack() override;
  void process_destroy() override;

  wherry_sessions_t& sessions_;
};

/// Owns the sessions of a port and their gates.
class wherry_sessions_t final : public own_t, private io_object_t {
 public:
  /// @param io_thread  the listener's
  /// @param socket     the bound socket, which outlives this object
  wherry_sessions_t(io_thread_t* io_thread, socket_base_t* socket, const options_t& options);

  /// @param session  its engine will be `engine`, which is not attached yet
  /// @param io_thread  the session's
  void launch(session_base_t* session, io_thread_t* io_thread, wherry_engine_t& engine);
  /// Called by a gate of which only the acknowledgement is left.
  void drained(wherry_gate_t* gate);

 private:
  void process_plug() override {}
  void process_term(int linger) override;
  void timer_event(int id) override;
  void end_child(own_t* child, int linger);
  void await_linger();
  void end(int linger);

  io_thread_t* const io_thread_;
  socket_base_t* const socket_;
  std::map<wherry_gate_t*, session_base_t*> gates_;  ///< gates of connections that are not drained
  bool draining_ = false;
  int linger_ = 0;  ///< ms; negative: no limit
  int waited_ = 0;  ///< ms
};

}  // namespace zmq
