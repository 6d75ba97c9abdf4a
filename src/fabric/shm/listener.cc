// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/listener.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "fabric/check.hpp"
#include "fabric/shm/connection.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::uint16_t kFirstAutomaticPort = 1089;  ///< below are the ports SCIF reserves

/// Connectors, most of them strangers perhaps, that one call takes from the kernel's queue.
constexpr std::size_t kMostAtOnce = 64;

/// Connectors that have said nothing yet hold a quarter of this process's descriptors at most.
constexpr std::size_t kMostPending = 4096;
constexpr rlim_t kShareOfDescriptors = 4;

std::size_t most_pending() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kMostPending;
  return static_cast<std::size_t>(std::clamp<rlim_t>(files.rlim_cur / kShareOfDescriptors, 1, kMostPending));
}

const char* objection_to(const layout::ShmHello& hello, const Offer& offer) {
  if (offer.objection == nullptr) return nullptr;
  Greeting greeting;
  static_assert(sizeof greeting == sizeof hello.greeting);
  std::memcpy(greeting.data(), hello.greeting, sizeof greeting);
  return offer.objection(greeting, hello.segment_bytes);
}

/// With a low number: one beyond a limit that is lowered later would make no room.
UniqueFd spare_descriptor(int of) { return UniqueFd(::fcntl(of, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

ShmListener::ShmListener(const Address& wanted)
    : local_(shm_address(node_to_bind(wanted), wanted.port.value_or(0))), pending_(wanted.to_string()) {
  const std::string text = wanted.to_string();
  check_own_user("listen", text);
  socket_ = make_socket("listen", text);
  if (!wanted.port) {
    bind_any_port();
  } else if (!bind_port(*wanted.port)) {
    const int error = errno;
    throw Error(error, "listen", text, error == EADDRINUSE ? advice_on_taken_port() : advice_on(error, "bind"));
  }
  if (::listen(socket_.get(), queue_length_) != 0) throw Error(errno, "listen", text, advice_on(errno, "listen"));
  pending_.watch(socket_.get());
  spare_ = spare_descriptor(socket_.get());
}

bool ShmListener::bind_port(std::uint16_t port) {
  const SocketName name = socket_name(*local_.node, port);
  return ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0;
}

void ShmListener::bind_any_port() {
  for (std::uint32_t port = kFirstAutomaticPort; port <= UINT16_MAX; ++port) {
    if (bind_port(static_cast<std::uint16_t>(port))) {
      local_.port = static_cast<std::uint16_t>(port);
      return;
    }
    if (errno != EADDRINUSE) throw Error(errno, "listen", local_.to_string(), advice_on(errno, "bind"));
  }
  throw Error(EADDRINUSE, "listen", local_.to_string(), "every port from 1089 up is taken; stop a listener");
}

/// A connection tells the credentials of the name's holder, to which it is a connector that has gone again.
std::string ShmListener::advice_on_taken_port() const {
  const UniqueFd probe = make_socket("listen", local_.to_string());
  const SocketName name = socket_name(*local_.node, *local_.port);
  std::string holder = "somebody who does not listen yet";
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0) {
    const Peer peer = credentials(probe.get());
    holder = peer.pid == ::getpid() ? "this process, which listens there already,"
                                    : "process " + std::to_string(peer.pid) + " of user " + std::to_string(peer.uid);
  }
  return holder + " has this port; use another port, or * for a free one";
}

/// Requests are served before more connectors are accepted: so all that are pending when there are too many are silent,
/// or companions.
std::unique_ptr<Connection> ShmListener::try_accept(const Offer& offer) {
  check_offer("accept on", local_, offer);
  int obstacle = 0;
  if (auto connection = serve(offer, obstacle)) return connection;
  while (const auto late = pending_.take_late(Pending::Clock::now())) drop(late->peer, ETIMEDOUT);
  if (const int refused = take_connectors(); refused != 0) obstacle = refused;
  adapt_queue();
  if (auto connection = serve(offer, obstacle)) return connection;
  if (obstacle == 0) return nullptr;
  throw Error(obstacle, "accept on", local_.to_string(), advice_on(obstacle, "accept"));
}

/// Takes some from the kernel's queue, and drops strangers. Returns 0, or why it could take no more: an errno value.
int ShmListener::take_connectors() {
  const std::size_t most = most_pending();
  const auto timeout = std::chrono::milliseconds(config::number(config::Key::connect_timeout));
  for (std::size_t taken = 0; taken < std::min(kMostAtOnce, most); ++taken) {
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      const int error = errno;
      if (error == EMFILE || error == ENFILE) refuse_connectors();
      return error == EAGAIN ? 0 : error;
    }
    Peer peer = credentials(socket.get());
    if (!same_user(peer)) {
      strangers_.spend(StrangerBudget::Clock::now());
      drop(peer, EACCES);
      continue;
    }
    while (pending_.size() >= most) drop(pending_.take_least_promising().peer, ETIMEDOUT);
    pending_.add(std::move(socket), std::move(peer), timeout);
  }
  return 0;
}

/// Not in a forked child: listening again would make it the process that connectors see.
void ShmListener::adapt_queue() {
  const int wanted = strangers_.queue_length(StrangerBudget::Clock::now());
  if (wanted == queue_length_ || origin_.inherited()) return;
  if (::listen(socket_.get(), wanted) == 0) queue_length_ = wanted;
}

/// Out of descriptors: connectors are refused at once and may try again. Many may be of this very process, and hold the
/// descriptors that are missing to accept one of them.
void ShmListener::refuse_connectors() {
  for (std::size_t refused = 0; refused < kMostAtOnce && spare_.valid(); ++refused) {
    spare_.reset();
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool any = socket.valid();
    if (any) drop(credentials(socket.get()), EMFILE);
    socket.reset();
    spare_ = spare_descriptor(socket_.get());
    if (!any) return;
  }
  if (!spare_.valid()) spare_ = spare_descriptor(socket_.get());
}

/// Accepts the first that has sent a good request. `obstacle`: what kept one out that this side has to answer for.
std::unique_ptr<Connection> ShmListener::serve(const Offer& offer, int& obstacle) {
  pending_.look();
  while (Pending* ready = pending_.next_ready()) {
    Packet packet;
    std::uint64_t companion = 0;
    const int error = receive_request(ready->socket.get(), packet, companion);
    if (error == EAGAIN || (companion != 0 && std::exchange(ready->companion, companion) == 0)) continue;
    if (error == ECONNRESET && ready->companion != 0 && offer.departed) {
      pending_.silence(*ready);  // the connector has ended, and its request may still follow
      continue;
    }
    Pending pending = pending_.take(*ready);
    // Its descriptors did not fit into this process and are lost; the connector sees a refusal and may come again.
    if (error == EMFILE || error == ENOMEM || error == ENOBUFS) obstacle = error;
    if (error == EMFILE && packet.hello.companion != 0) {
      (void)pending_.take_companion(packet.hello.companion, pending.peer);
    }
    if (error == EPROTO || companion != 0) {
      refuse(pending.peer, "its request is malformed, or of another version of Wherry");
      continue;
    }
    if (error != 0) {
      drop(pending.peer, error);
      continue;
    }
    if (auto connection = answer(std::move(pending), std::move(packet), offer)) return connection;
  }
  return nullptr;
}

/// What a connector did wrong is no error of this side's: it is told by the socket's end, and the log.
void ShmListener::drop(const Peer& peer, int error) const {
  if (!log::enabled(log::Level::info)) return;
  log::write(log::Level::info, "dropped a connector to " + local_.to_string() + ", process " +
                                   std::to_string(peer.pid) + " of user " + std::to_string(peer.uid) + ": " +
                                   std::generic_category().message(error));
}

/// A peer of this user that breaks the handshake.
void ShmListener::refuse(const Peer& peer, const std::string& reason) {
  warnings_.write(log::Level::warning, "refused a connector to " + local_.to_string() + ", process " +
                                           std::to_string(peer.pid) + ": " + reason +
                                           "; use one version of Wherry on both sides");
}

std::unique_ptr<Connection> ShmListener::answer(Pending pending, Packet packet, const Offer& offer) {
  UniqueFd companion;
  if (packet.hello.companion != 0) {
    // It was connected, and said what it is, before this request was.
    companion = pending_.take_companion(packet.hello.companion, pending.peer);
    if (!companion.valid()) {
      drop(pending.peer, EPROTO);  // or it has gone again, as a mailbox whose peer connects to it does
      return nullptr;
    }
  }
  if (const char* reason = objection_to(packet.hello, offer); reason != nullptr) {
    refuse(pending.peer, reason);
    return nullptr;
  }
  pending.peer.address = shm_address(packet.hello.node, packet.hello.port);
  OwnSide own(offer);
  const layout::ShmHello hello = own.hello(*local_.node, *local_.port);
  const auto descriptors = own.descriptors();
  const int socket = pending.socket.get();
  std::unique_ptr<ShmConnection> connection;
  try {
    // The peer's half is checked before it hears anything.
    connection = std::make_unique<ShmConnection>(std::move(own), std::move(pending.socket), std::move(packet),
                                                 pending.peer, std::move(companion));
  } catch (const Error& error) {
    if (error.code().value() != EPROTO) throw;
    refuse(pending.peer, "its memory is not a sealed memfd of the size announced");
    return nullptr;
  }
  if (const int error = send_packet(socket, hello, descriptors); error != 0) {
    const bool departed = error == EPIPE || error == ECONNRESET;
    if (departed && offer.departed) return connection;
    drop(pending.peer, error);
    if (departed) return nullptr;
    throw Error(error, "answer a connector to", local_.to_string(), advice_on(error, "sendmsg"));
  }
  connection->handed_over();
  return connection;
}

}  // namespace wherry::fabric::shm
