// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_watch.hpp"

#include <utility>

#include "wherry_engine.hpp"
#include "wherry_memory.hpp"

namespace zmq {
namespace {

/// After this time without large messages, the memory kept for them is returned.
constexpr int kIdleMs = 1000;
constexpr int kIdleTimer = 1;

}  // namespace

wherry_watch_t::wherry_watch_t(io_thread_t* io_thread, fd_t fd, wherry_engine_t& engine, news_t news)
    : io_object_t(io_thread), fd_(fd), engine_(engine), news_(news) {
  watch();
}

wherry_watch_t::~wherry_watch_t() {
  if (timed_) {
    cancel_timer(kIdleTimer);
    wherry_message_memory().end_watch();
  }
  if (watched_ != nullptr) rm_fd(watched_);
}

void wherry_watch_t::watch() {
  watched_ = add_fd(fd_);
  set_pollin(watched_);
}

void wherry_watch_t::pause() {
  if (!std::exchange(paused_, true)) reset_pollin(watched_);
}

void wherry_watch_t::resume() {
  if (!std::exchange(paused_, false)) return;
  if (watched_ == nullptr) {
    watch();
  } else {
    set_pollin(watched_);
  }
  ask_for_turn();
}

void wherry_watch_t::ask_for_turn() {
  if (watched_ != nullptr && !std::exchange(turn_, true)) set_pollout(watched_);
}

void wherry_watch_t::end_turn() {
  if (std::exchange(turn_, false)) reset_pollout(watched_);
}

/// The engine, and this watch with it, may be destroyed when the call returns. While this is paused the poller reports
/// only the peer's end, and would do so again and again. So the descriptor is removed.
void wherry_watch_t::in_event() {
  if (!paused_) return (engine_.*news_)();
  if (watched_ == nullptr) return;
  turn_ = false;
  rm_fd(std::exchange(watched_, nullptr));
}

void wherry_watch_t::out_event() { (engine_.*news_)(); }

void wherry_watch_t::await_idle_memory() {
  if (std::exchange(timed_, true)) return;
  wherry_message_memory().begin_watch();
  add_timer(kIdleMs, kIdleTimer);
}

void wherry_watch_t::timer_event(int /*id*/) {
  timed_ = !wherry_message_memory().release_unused();
  if (timed_) {
    add_timer(kIdleMs, kIdleTimer);
  } else {
    wherry_message_memory().end_watch();
  }
}

}  // namespace zmq
