// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_join.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include <wherry/error.hpp>

#include "wherry_mapped_engine.hpp"
#include "wherry_place.hpp"
#include "wherry_room.hpp"

namespace zmq {
namespace {

constexpr int kStartTimer = 1;
constexpr int kLimitTimer = 2;

/// Limit in ms if the handshake has none.
constexpr int kLimit = 10'000;

/// Precedes the token: bytes that a peer has chosen must not be a request to another listener, whose port it may have
/// named.
constexpr std::string_view kProofMark = "zmqproof";

constexpr std::array kAnswer{std::byte{1}};

[[noreturn]] void fail(int error) { throw wherry::Error(error, "carry a ZeroMQ connection over Wherry", "", ""); }

/// Sends a few bytes into an empty ring: there is room, or the peer is gone.
void send_at_once(wherry::Stream& stream, std::span<const std::byte> bytes) {
  const wherry::Result result = stream.try_send(bytes);
  if (result.bytes != bytes.size()) fail(result.failed() ? result.error : ENOBUFS);
}

}  // namespace

wherry_join_t::wherry_join_t(io_thread_t* io_thread, wherry_mapped_engine_t& engine, const options_t& options,
                             bool binds)
    : io_object_t(io_thread), engine_(engine), options_(options), binds_(binds) {}

wherry_join_t::~wherry_join_t() { stop(); }

const wherry_offer_t& wherry_join_t::offer() {
  if (own_) return *own_;
  own_.emplace().place = wherry_place();
  if (!binds_) return *own_;
  try {
    listener_.emplace(wherry::listen("wherry://*:*", wherry_stream_options(options_)));
    own_ = wherry_offer_t::random(*listener_->local().node, *listener_->local().port, own_->place);
  } catch (const wherry::Error&) {
    // Without a port no stream can come: the connection stays on its socket.
  }
  return *own_;
}

/// Starts from the poller, because the engine calls this from within calls that must not end it. A peer may never
/// answer, for example because its port is another program's here. So most of the handshake's time is left for the
/// socket.
void wherry_join_t::start(const wherry_offer_t& peers) {
  peers_ = peers;
  add_timer(0, kStartTimer);
  starts_ = true;
  add_timer(options_.handshake_ivl > 0 ? options_.handshake_ivl / 3 : kLimit, kLimitTimer);
  limited_ = true;
}

void wherry_join_t::stop() {
  if (std::exchange(starts_, false)) cancel_timer(kStartTimer);
  if (std::exchange(limited_, false)) cancel_timer(kLimitTimer);
  unwatch();
  link_.reset();
  connecting_.reset();
  listener_.reset();
}

/// The bound end waits for the poller, which reports the oldest news first: connections become ready in the order in
/// which they were made, as with other transports.
void wherry_join_t::timer_event(int id) {
  if (id == kLimitTimer) {
    limited_ = false;
    give_up();
    return;
  }
  starts_ = false;
  if (binds_) {
    watch(listener_->descriptor());
  } else {
    in_event();
  }
}

/// The engine, and this object with it, may be destroyed when the call returns.
void wherry_join_t::in_event() {
  try {
    if (!advance()) return;
  } catch (const wherry::Error&) {
    give_up();
    return;
  }
  wherry_link_t link = std::move(*link_);
  stop();
  engine_.on_joined(std::move(link));
}

void wherry_join_t::give_up() {
  stop();
  engine_.on_not_joined();
}

/// Returns true once the other end is known to use the stream, too.
bool wherry_join_t::advance() {
  if (!link_) {
    std::optional<wherry::Stream> stream = accept_or_connect();
    if (!stream) return false;
    hold(std::move(*stream));
  }
  const std::span awaited = std::span(received_).first(binds_ ? received_.size() : kAnswer.size());
  const wherry::Result result = link_->stream.try_receive(awaited.subspan(received_bytes_));
  received_bytes_ += result.bytes;
  if (received_bytes_ < awaited.size() && (result.ok() || result.would_block())) return false;
  if (!binds_) {
    if (received_bytes_ < awaited.size()) fail(result.failed() ? result.error : ECONNRESET);
    return true;
  }
  if (received_bytes_ == awaited.size() && received_ == proof_of(*own_)) {
    send_at_once(link_->stream, kAnswer);
    return true;
  }
  // Not the peer that got the offer.
  unwatch();
  link_.reset();
  watch(listener_->descriptor());
  return false;
}

std::optional<wherry::Stream> wherry_join_t::accept_or_connect() {
  if (binds_) return listener_->try_accept();
  if (!connecting_) {
    // The peer listens before it sends its address.
    connecting_.emplace(
        wherry::start_connect(peers_.address(), wherry_stream_options(options_), std::chrono::seconds(0)));
    watch(connecting_->descriptor());
  }
  return connecting_->try_finish();
}

void wherry_join_t::hold(wherry::Stream stream) {
  unwatch();
  connecting_.reset();
  link_.emplace(std::move(stream), options_);
  // Many connections may have begun to join when there was room for all.
  if (!wherry_has_room(link_->receive_fd)) fail(EMFILE);
  received_bytes_ = 0;
  watch(link_->receive_fd);
  if (!binds_) send_at_once(link_->stream, proof_of(peers_));
}

wherry_join_t::proof_t wherry_join_t::proof_of(const wherry_offer_t& offer) {
  proof_t proof{};
  static_assert(kProofMark.size() + sizeof offer.token == sizeof proof);
  std::ranges::copy(std::as_bytes(std::span(kProofMark)), proof.begin());
  std::ranges::copy(std::as_bytes(std::span(offer.token)), proof.begin() + kProofMark.size());
  return proof;
}

void wherry_join_t::watch(fd_t fd) {
  watched_ = add_fd(fd);
  set_pollin(*watched_);
}

void wherry_join_t::unwatch() {
  if (watched_) rm_fd(*watched_);
  watched_.reset();
}

}  // namespace zmq
