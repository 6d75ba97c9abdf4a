// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_connecter.hpp"

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <wherry/error.hpp>
#include <wherry/stream.hpp>

#include <address.hpp>
#include <err.hpp>
#include <io_thread.hpp>
#include <session_base.hpp>
#include <socket_base.hpp>
#include "wherry_engine.hpp"

namespace zmq {
namespace {

/// The base class uses 1.
constexpr int kConnectTimer = 2;

}  // namespace

wherry_connecter_t::wherry_connecter_t(io_thread_t* io_thread, session_base_t* session, const options_t& options,
                                       address_t* address, bool delayed_start)
    : stream_connecter_base_t(io_thread, session, options, address, delayed_start) {}

wherry_connecter_t::~wherry_connecter_t() { zmq_assert(!timer_runs_); }

/// The base class removes the descriptor from the poller. It is closed later, with this object.
void wherry_connecter_t::process_term(int linger) {
  stop_timer();
  stream_connecter_base_t::process_term(linger);
}

void wherry_connecter_t::start_connecting() {
  try {
    connecting_ = std::make_unique<wherry::Connecting>(
        // Does not wait for a listener: libzmq retries as its socket options say.
        wherry::start_connect("wherry://" + _addr->address, wherry_stream_options(options), std::chrono::seconds(0)));
  } catch (const wherry::Error& error) {
    give_up(error.code().value());
    return;
  }
  _handle = add_fd(connecting_->descriptor());
  set_pollin(_handle);
  start_timer();
  _socket->event_connect_delayed(make_unconnected_connect_endpoint_pair(_endpoint), EINPROGRESS);
}

/// The base class calls this for every event of the descriptor.
void wherry_connecter_t::out_event() {
  std::optional<wherry::Stream> stream;
  try {
    stream = connecting_->try_finish();
    if (!stream) return;
    stop_timer();
    rm_handle();
    connecting_.reset();
    attach(std::move(*stream));
  } catch (const wherry::Error& error) {
    give_up(error.code().value());
  }
}

void wherry_connecter_t::attach(wherry::Stream stream) {
  const endpoint_uri_pair_t pair(wherry_name(stream.local()), _endpoint, endpoint_type_connect);
  auto* engine = new wherry_engine_t(wherry_link_t(std::move(stream), options), options, pair);
  const fd_t fd = engine->descriptor();
  // As in the base class, which knows two engines only.
  send_attach(_session, engine);
  terminate();
  _socket->event_connected(pair, fd);
}

/// Retries later, unless the socket's options say otherwise.
void wherry_connecter_t::give_up(int error) {
  stop_timer();
  if (_handle) rm_handle();
  if (connecting_) {
    const fd_t fd = connecting_->descriptor();
    connecting_.reset();
    _socket->event_closed(make_unconnected_connect_endpoint_pair(_endpoint), fd);
  }
  const bool refused = error == ECONNREFUSED;
  // Such as too many open files: otherwise a monitor would see only that it retries.
  if (!refused) _socket->event_connect_delayed(make_unconnected_connect_endpoint_pair(_endpoint), error);
  if (refused && (options.reconnect_stop & ZMQ_RECONNECT_STOP_CONN_REFUSED)) {
    send_conn_failed(_session);
    terminate();
    return;
  }
  add_reconnect_timer();
}

/// Limits the time to connect. The I/O thread of the listening process may be stopped, or busy for ever. The limit is
/// that of the socket's options, or else that of the handshake, of which this is part.
void wherry_connecter_t::start_timer() {
  const int timeout = options.connect_timeout > 0 ? options.connect_timeout : options.handshake_ivl;
  if (timeout <= 0) return;
  add_timer(timeout, kConnectTimer);
  timer_runs_ = true;
}

void wherry_connecter_t::stop_timer() {
  if (timer_runs_) cancel_timer(kConnectTimer);
  timer_runs_ = false;
}

void wherry_connecter_t::timer_event(int id) {
  if (id != kConnectTimer) {
    stream_connecter_base_t::timer_event(id);
    return;
  }
  timer_runs_ = false;
  give_up(ETIMEDOUT);
}

}  // namespace zmq
