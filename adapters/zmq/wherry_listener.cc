// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_listener.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <wherry/error.hpp>
#include <wherry/stream.hpp>

#include <address.hpp>
#include <err.hpp>
#include <io_thread.hpp>
#include <session_base.hpp>
#include <socket_base.hpp>
#include "wherry_engine.hpp"
#include "wherry_ports.hpp"
#include "wherry_sessions.hpp"

namespace zmq {
namespace {

/// Connections that one event accepts at most: others share the I/O thread.
constexpr int kMostAtOnce = 16;

/// Pause after a failed accept. The connector keeps the descriptor readable, and the reason, usually too many open
/// files, does not go away faster if accept is retried at once.
constexpr int kRestMs = 100;
constexpr int kRestTimer = 1;

/// Whether the filters ZMQ_IPC_FILTER_*, if any are set, accept this peer. They refuse a peer that the kernel does not
/// vouch for.
bool is_welcome(const options_t& options, const wherry::Peer& peer) {
  const auto& uids = options.ipc_uid_accept_filters;
  const auto& gids = options.ipc_gid_accept_filters;
  const auto& pids = options.ipc_pid_accept_filters;
  if (uids.empty() && gids.empty() && pids.empty()) return true;
  if (!peer.vouched()) return false;
  return uids.count(peer.uid) != 0 || gids.count(peer.gid) != 0 || pids.count(static_cast<pid_t>(peer.pid)) != 0;
}

/// Listens on the first free port of those named.
wherry::Listener listen_on(const char* name, const options_t& options) {
  wherry_ports_t ports(name);
  std::string text = *ports.next();
  while (true) {
    try {
      return wherry::listen("wherry://" + text, wherry_stream_options(options));
    } catch (const wherry::Error& error) {
      std::optional<std::string> another = ports.next();
      if (error.code().value() != EADDRINUSE || !another) throw;
      text = std::move(*another);
    }
  }
}

}  // namespace

wherry_listener_t::wherry_listener_t(io_thread_t* io_thread, socket_base_t* socket, const options_t& options)
    : stream_listener_base_t(io_thread, socket, options), io_thread_(io_thread) {}

wherry_listener_t::~wherry_listener_t() = default;

int wherry_listener_t::set_local_address(const char* name) {
  try {
    listener_ = std::make_unique<wherry::Listener>(listen_on(name, options));
  } catch (const wherry::Error& error) {
    _socket->event_bind_failed(make_unconnected_bind_endpoint_pair(name), error.code().value());
    errno = error.code().value();
    return -1;
  }
  _s = listener_->descriptor();
  _endpoint = wherry_name(listener_->local());
  _socket->event_listening(make_unconnected_bind_endpoint_pair(_endpoint), _s);
  return 0;
}

std::string wherry_listener_t::get_socket_name(fd_t, socket_end_t) const { return _endpoint; }

void wherry_listener_t::in_event() {
  try {
    for (int i = 0; i < kMostAtOnce; i++) {
      std::optional<wherry::Stream> stream = listener_->try_accept();
      if (!stream) return;
      if (is_welcome(options, stream->peer())) attach(std::move(*stream));
    }
  } catch (const wherry::Error& error) {
    _socket->event_accept_failed(make_unconnected_bind_endpoint_pair(_endpoint), error.code().value());
    reset_pollin(_handle);
    add_timer(kRestMs, kRestTimer);
    resting_ = true;
  }
}

void wherry_listener_t::timer_event(int) {
  resting_ = false;
  set_pollin(_handle);
}

void wherry_listener_t::attach(wherry::Stream stream) {
  const endpoint_uri_pair_t pair(_endpoint, wherry_name(stream.peer().address), endpoint_type_bind);
  // Only this may fail for lack of descriptors, so it is first.
  auto* engine = new wherry_engine_t(wherry_link_t(std::move(stream), options), options, pair);
  const fd_t fd = engine->descriptor();

  // As in the base class, which knows two engines only; but the session has another owner.
  io_thread_t* io_thread = choose_io_thread(options.affinity);
  zmq_assert(io_thread);
  session_base_t* session = session_base_t::create(io_thread, false, _socket, options, nullptr);
  errno_assert(session);
  session->inc_seqnum();
  if (sessions_ == nullptr) {
    sessions_ = new wherry_sessions_t(io_thread_, _socket, options);
    launch_child(sessions_);
  }
  sessions_->launch(session, io_thread, *engine);
  send_attach(session, engine, false);
  _socket->event_accepted(pair, fd);
}

int wherry_listener_t::close() {
  if (resting_) cancel_timer(kRestTimer);
  resting_ = false;
  const fd_t fd = _s;
  _s = retired_fd;
  listener_.reset();
  _socket->event_closed(make_unconnected_bind_endpoint_pair(_endpoint), fd);
  return 0;
}

}  // namespace zmq
