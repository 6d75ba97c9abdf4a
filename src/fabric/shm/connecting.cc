// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/connecting.hpp"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "base/beyond_select.hpp"
#include "base/config.hpp"
#include "base/refused_call.hpp"
#include "fabric/shm/elsewhere.hpp"

namespace wherry::fabric::shm {
namespace {

/// By which the listener knows which two connections belong together. Of this user's processes none should guess it.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number || number == 0) {
    if (errno != EINTR && number == 0) throw Error(errno, "connect", "", advice_on(errno, "getrandom"));
  }
  return number;
}

}  // namespace

ShmConnecting::ShmConnecting(const Address& address, const Offer& offer) : address_(address), own_(offer) {
  check_own_user("connect to", address.to_string());
  const std::uint64_t companion = random_number();
  companion_ = beyond_select(reach_listener());
  const Peer first = peer_;
  require_sent(send_companion(companion_.get(), companion));
  socket_ = reach_listener();
  if (peer_.pid != first.pid) fail(ECONNREFUSED, "the listener has just closed, and another taken its place");
  require_sent(send_packet(socket_.get(), own_.hello(own_node(), 0, companion), own_.descriptors()));
  // What is under way keeps the memory alive: one descriptor fewer while the peer has not accepted.
  own_.memory.drop_descriptor();
}

/// A connection to the listener; stores the listener's credentials in peer_.
UniqueFd ShmConnecting::reach_listener() {
  const std::uint16_t node = *address_.node;
  UniqueFd socket = make_socket("connect to", address_.to_string());
  const SocketName name = socket_name(node, *address_.port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
    // A full backlog is a refusal too: there is nothing to wait on.
    if (errno == EAGAIN) {
      throw QueueFull(ECONNREFUSED, "connect to", address_.to_string(),
                      "too many connectors wait there already; try again, or accept faster");
    }
    if (errno != ECONNREFUSED) fail(errno, advice_on(errno, "connect"));
    const std::string elsewhere = listener_elsewhere(node, *address_.port);
    fail(ECONNREFUSED, "nobody of this user listens on port " + std::to_string(*address_.port) + " of node " +
                           std::to_string(node) + " in job '" + config::text(config::Key::job) + "'; " +
                           (elsewhere.empty() ? "start the listener first, or check WHERRY_JOB" : elsewhere));
  }
  peer_ = credentials(socket.get());
  peer_.address = shm_address(node, *address_.port);
  if (!same_user(peer_))
    fail(EACCES, "user " + std::to_string(peer_.uid) + " holds this name; choose another WHERRY_JOB");
  return socket;
}

void ShmConnecting::require_sent(int error) const {
  // A listener closed meanwhile shows as one or the other, by whether it had taken this connector off its queue.
  if (error == EPIPE || error == ECONNRESET) fail(ECONNREFUSED, "the listener has just closed");
  if (error != 0) fail(error, advice_on(error, "sendmsg"));
}

std::unique_ptr<Connection> ShmConnecting::try_finish() {
  Packet packet;
  const int error = receive_packet(socket_.get(), packet);
  if (error == EAGAIN) return nullptr;
  if (error == ECONNRESET)
    fail(ECONNREFUSED, "the listener closed, or refused this connector (WHERRY_LOG=info there says why)");
  if (error == EPROTO)
    fail(error, "what answered does not speak this version of Wherry; use one version on both sides");
  if (error != 0) fail(error, advice_on(error, "recvmsg"));
  return std::make_unique<ShmConnection>(std::move(own_), std::move(socket_), std::move(packet), std::move(peer_),
                                         std::move(companion_));
}

}  // namespace wherry::fabric::shm
