// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that an I/O thread looks at for an engine, besides the one that libzmq's own engine polls. C++20: none
// of libzmq's own sources includes this.
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

  /// Until `resume` nothing is called but for a turn.
  void pause();
  /// After a pause: calls `news` soon, whether there are any or not.
  void resume();
  /// The engine has more to do, after the other engines of this thread have had their turn.
  void ask_for_turn();
  /// `news` is not called again for the turn that was asked for. Without one this does nothing.
  void end_turn();

  /// Large messages pass: when there are none for a while, their memory goes back to the system.
  void await_idle_memory();

 private:
  void in_event() override;
  void out_event() override;
  void timer_event(int id) override;
  void watch();

  const fd_t fd_;
  wherry_engine_t& engine_;
  const news_t news_;
  handle_t watched_ = nullptr;  ///< null: paused, and the peer is gone
  bool paused_ = false;
  bool turn_ = false;
  bool timed_ = false;
};

}  // namespace zmq
