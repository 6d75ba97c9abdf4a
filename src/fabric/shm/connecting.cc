// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/connecting.hpp"

#include <sys/random.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/move_above_fd_setsize.hpp"
#include "base/refused_call.hpp"
#include "base/user.hpp"
#include "fabric/shm/elsewhere.hpp"

namespace wherry::fabric::shm {
namespace {

/// Returns the number by which the listener recognizes that two connections belong together. Random, so that no other
/// process of this user can guess it.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number || number == 0) {
    if (errno != EINTR && number == 0) throw Error(errno, "connect", "", advice_on(errno, "getrandom"));
  }
  return number;
}

/// Tries in a row at a full queue. During a storm of other users' connectors, another one takes a free place within
/// microseconds. One try instead of 16 made connecting take seven times as long.
constexpr int kTriesAtFullQueue = 16;

/// Returns 0 or an errno value. EAGAIN: the listener's queue was full at each try.
int connect_to(int socket, const SocketName& name) {
  for (int tries = 1;; ++tries) {
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0) return 0;
    if (errno != EAGAIN || tries == kTriesAtFullQueue) return errno;
    std::this_thread::yield();
  }
}

/// Returns the advice if there is no listener: how to reach a listener elsewhere, if the kernel shows one; else
/// everything that both sides must have in common.
std::string advice_where_nobody_listens(std::uint16_t node, std::uint16_t port) {
  const std::string nobody = "nobody listens on port " + std::to_string(port) + " of node " + std::to_string(node) +
                             " as " + place_of_search();
  const auto elsewhere = recent_listener_elsewhere(node, port);
  if (elsewhere.empty()) {
    return nobody +
           "; start the listener first, as the same user, with the same WHERRY_JOB and in the same network "
           "namespace";
  }
  return nobody + "; start the listener first, or, to reach the one" + elsewhere.front().difference() + ", " +
         elsewhere.front().remedy();
}

/// Returns the advice if a process of another user listens at this name.
std::string advice_on_holder(std::uint32_t user) {
  if (!names_one_user(user)) {
    return "a process of a user without a number in this user namespace listens there; share the user namespace, or "
           "choose another WHERRY_JOB";
  }
  return "user " + std::to_string(user) + " holds this name; choose another WHERRY_JOB";
}

}  // namespace

UniqueFd reach_listener(const Address& address, Peer& peer) {
  const std::string text = address.to_string();
  const auto fail = [&text](int error, const std::string& advice) { throw Error(error, "connect to", text, advice); };
  UniqueFd socket = make_socket("connect to", text);
  const int error = connect_to(socket.get(), socket_name(*address.node, *address.port));
  if (error != 0) {
    // A full queue is reported as a refusal: there is no descriptor to wait on.
    if (error == EAGAIN) {
      throw QueueFull(ECONNREFUSED, "connect to", text,
                      "too many connectors wait there already; try again, or accept faster");
    }
    if (error != ECONNREFUSED) fail(error, advice_on(error, "connect"));
    fail(ECONNREFUSED, advice_where_nobody_listens(*address.node, *address.port));
  }
  peer = credentials(socket.get());
  peer.address = shm_address(*address.node, *address.port);
  if (!same_user(peer)) fail(EACCES, advice_on_holder(peer.uid));
  return socket;
}

UniqueFd ShmConnecting::reach_companion() {
  check_own_user("connect to", address_.to_string());
  return move_above_fd_setsize(reach_listener(address_, peer_));
}

ShmConnecting::ShmConnecting(const Address& address, const Offer& offer)
    : address_(address), companion_(reach_companion()), own_(offer) {
  const std::uint64_t companion = random_number();
  const Peer first = peer_;
  require_sent(send_companion(companion_.get(), companion));
  socket_ = reach_listener(address_, peer_);
  if (peer_.pid != first.pid) fail(ECONNREFUSED, "the listener has just closed, and another taken its place");
  require_sent(send_packet(socket_.get(), own_.hello(own_node(), 0, companion), own_.descriptors()));
  // The packet in the socket keeps the memory alive. Dropping the descriptor saves one until the peer accepts.
  own_.memory.drop_descriptor();
}

void ShmConnecting::require_sent(int error) const {
  // If the listener has closed, the error depends on whether it had taken this connector from its queue.
  if (error == EPIPE || error == ECONNRESET) fail(ECONNREFUSED, "the listener has just closed");
  if (error != 0) fail(error, advice_on(error, "sendmsg"));
}

std::unique_ptr<Connection> ShmConnecting::try_finish() {
  Packet packet;
  const int error = receive_packet(socket_.get(), packet);
  if (error == EAGAIN) return nullptr;
  if (error == ECONNRESET)
    fail(ECONNREFUSED, "the listener closed, or refused this connector (WHERRY_LOG=info there says why)");
  if (error == EPROTO) fail(error, "the listener uses another version of Wherry; use one version on both sides");
  if (error != 0) fail(error, advice_on(error, "recvmsg"));
  PeersSide peers(std::move(packet), peer_.address);
  return std::make_unique<ShmConnection>(std::move(own_), std::move(peers), std::move(socket_), std::move(peer_),
                                         std::move(companion_));
}

}  // namespace wherry::fabric::shm
