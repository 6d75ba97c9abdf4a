// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_sessions.hpp"

#include <algorithm>
#include <utility>

#include <err.hpp>
#include <io_thread.hpp>
#include <session_base.hpp>
#include <socket_base.hpp>
#include "wherry_engine.hpp"

namespace zmq {
namespace {

/// Interval of looks at ZMQ_LINGER: a program may change it before it closes a socket that has unbound its port.
constexpr int kLingerLookMs = 100;
constexpr int kLingerTimer = 1;

/// The socket's options belong to its own thread, except this one, which is atomic.
int linger_of(socket_base_t* socket) {
  struct reach_t : own_t {
    using own_t::options;
  };
  return (static_cast<own_t*>(socket)->*(&reach_t::options)).linger.load();
}

}  // namespace

wherry_drain_t::wherry_drain_t(io_thread_t* io_thread, const options_t& options, wherry_engine_t& engine)
    : own_t(io_thread, options), engine_(&engine) {
  engine.set_drain(this);
}

/// The gate waits for the acknowledgement. This object may be destroyed when the call returns.
void wherry_drain_t::process_term(int linger) {
  if (engine_ == nullptr) return own_t::process_term(linger);
  if (linger == 0) {
    std::exchange(engine_, nullptr)->set_drain(nullptr);
    return own_t::process_term(linger);
  }
  asked_ = true;
  engine_->notify_when_written();
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

/// Acknowledgement of the drain: it was asked to end, or its connection has ended.
void wherry_gate_t::process_term_ack() {
  const bool ending = is_terminating();
  unregister_term_ack();  // this object may be gone now, if it was ending
  if (!ending) terminate();
}

/// The acknowledgement has been sent already: the owner of the sessions waits for it.
void wherry_gate_t::process_destroy() {
  sessions_.drained(this);
  own_t::process_destroy();
}

wherry_sessions_t::wherry_sessions_t(io_thread_t* io_thread, socket_base_t* socket, const options_t& options)
    : own_t(io_thread, options), io_object_t(io_thread), io_thread_(io_thread), socket_(socket) {
  this->options.linger.store(0);
}

void wherry_sessions_t::launch(session_base_t* session, io_thread_t* io_thread, wherry_engine_t& engine) {
  auto* const gate = new wherry_gate_t(io_thread_, options, *this);
  gates_.emplace(gate, session);
  launch_child(gate);
  gate->launch(new wherry_drain_t(io_thread, options, engine));
  launch_child(session);
}

void wherry_sessions_t::process_term(int linger) {
  if (gates_.empty() || linger == 0) return own_t::process_term(linger);
  draining_ = true;
  linger_ = linger;
  for (const auto& [gate, session] : gates_) end_child(gate, linger);
  await_linger();
}

/// A child that asks for its own end gets no linger time: a session whose engine is gone, or a gate without a drain.
void wherry_sessions_t::end_child(own_t* child, int linger) {
  options.linger.store(linger);
  term_child(child);
  options.linger.store(0);
}

void wherry_sessions_t::drained(wherry_gate_t* gate) {
  const auto place = gates_.find(gate);
  session_base_t* const session = place->second;
  gates_.erase(place);
  if (!draining_) return;
  const int left = linger_ < 0 ? linger_ : std::max(linger_ - waited_, 1);
  end_child(session, left);  // unless it has ended
  if (!gates_.empty()) return;
  cancel_timer(kLingerTimer);
  end(left);
}

void wherry_sessions_t::end(int linger) {
  draining_ = false;
  own_t::process_term(linger);
}

void wherry_sessions_t::await_linger() {
  const int step = linger_ < 0 ? kLingerLookMs : std::min(linger_ - waited_, kLingerLookMs);
  waited_ += step;
  add_timer(step, kLingerTimer);
}

void wherry_sessions_t::timer_event(int /*id*/) {
  const auto is_over = [this](int linger) { return linger >= 0 && waited_ >= linger; };
  if (is_over(linger_) || is_over(linger_of(socket_))) return end(0);
  await_linger();
}

}  // namespace zmq
