// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_sessions.hpp"

#include <utility>

#include <err.hpp>
#include <io_thread.hpp>
#include <session_base.hpp>
#include "wherry_engine.hpp"

namespace zmq {
namespace {

constexpr int kLingerTimer = 1;

}  // namespace

wherry_drain_t::wherry_drain_t(io_thread_t* io_thread, const options_t& options, wherry_engine_t& engine)
    : own_t(io_thread, options), engine_(&engine) {
  engine.set_drain(this);
}

/// The acknowledgement is what the sessions wait for. This object may be gone when the call returns.
void wherry_drain_t::process_term(int linger) {
  if (engine_ == nullptr) return own_t::process_term(linger);
  if (linger == 0) {
    std::exchange(engine_, nullptr)->set_drain(nullptr);
    return own_t::process_term(linger);
  }
  asked_ = true;
  engine_->tell_when_written();
}

void wherry_drain_t::all_written() {
  engine_ = nullptr;
  own_t::process_term(0);
}

void wherry_drain_t::engine_gone() {
  if (asked_) return all_written();
  engine_ = nullptr;
  terminate();
}

/// The acknowledgement is on its way already: the owner of the sessions waits for it.
void wherry_drains_t::process_destroy() {
  sessions_.drained();
  own_t::process_destroy();
}

wherry_sessions_t::wherry_sessions_t(io_thread_t* io_thread, const options_t& options)
    : own_t(io_thread, options), io_object_t(io_thread), io_thread_(io_thread) {}

void wherry_sessions_t::launch(session_base_t* session, io_thread_t* io_thread, wherry_engine_t& engine) {
  if (drains_ == nullptr) {
    drains_ = new wherry_drains_t(io_thread_, options, *this);
    launch_child(drains_);
  }
  drains_->launch(new wherry_drain_t(io_thread, options, engine));
  launch_child(session);
}

void wherry_sessions_t::process_term(int linger) {
  if (drains_ == nullptr || linger == 0) return own_t::process_term(linger);
  draining_ = true;
  linger_ = linger;
  if (linger > 0) add_timer(linger, kLingerTimer);
  term_child(drains_);
}

void wherry_sessions_t::drained() {
  if (!std::exchange(draining_, false)) return;
  if (linger_ > 0) cancel_timer(kLingerTimer);
  own_t::process_term(linger_);
}

void wherry_sessions_t::timer_event(int /*id*/) {
  draining_ = false;
  own_t::process_term(0);
}

}  // namespace zmq
