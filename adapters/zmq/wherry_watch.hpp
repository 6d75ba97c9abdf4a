// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that an I/O thread polls for an engine, besides the one that libzmq's own engine polls. C++20: none of
// libzmq's own sources includes this.
#pragma once

#include <fd.hpp>
#include <io_object.hpp>

namespace zmq {

class wherry_engine_t;

/// An event descriptor of a stream: readable on news, always writable. Used in the engine's I/O thread only.
class wherry_watch_t final : public io_object_t {
 public:
  using news_t = void (wherry_engine_t::*)();
  /// @param news  called when the descriptor is readable, and for a turn that was asked for
  wherry_watch_t(io_thread_t* io_thread, fd_t fd, wherry_engine_t& engine, news_t news);
  ~wherry_watch_t() override;

  /// Until resume(), `news` is called only for a turn.
  void pause();
  /// Ends a pause: calls `news` soon, whether there is any or not.
  void resume();
  /// Calls `news` again after the other engines of this thread have had their turn.
  void ask_for_turn();
  /// Cancels the turn that was asked for, if there is one.
  void end_turn();

  /// To be called when large messages pass: when there are none for a while, their memory is returned to the system.
  void await_idle_memory();

 private:
  void in_event() override;
  void out_event() override;
  void timer_event(int id) override;
  void watch();

  const fd_t fd_;
  wherry_engine_t& engine_;
  const news_t news_;
  handle_t watched_ = nullptr;  ///< null while paused after the peer's end
  bool paused_ = false;
  bool turn_ = false;
  bool timed_ = false;
};

}  // namespace zmq
