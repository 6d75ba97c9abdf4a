// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/listener.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "fabric/check.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::uint16_t kFirstAutomaticPort = 1089;  ///< SCIF reserves the ports below

/// Connectors that one call takes from the kernel's queue. Most of them may be of other users.
constexpr std::size_t kMostAtOnce = 64;

/// Limits of pending connectors: they use at most a quarter of this process's descriptors.
constexpr std::size_t kMostPending = 4096;
constexpr rlim_t kShareOfDescriptors = 4;
/// The least limit for a mailbox's connectors: other connectors may come between a companion and its request.
constexpr std::size_t kLeastPending = 16;

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

constexpr const char* kMalformed = "its request is malformed, or of another version of Wherry";

bool is_short_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

/// Returns a duplicate with a low number. If the limit of open files is lowered later, closing a descriptor with a
/// number beyond the limit would not make room for another.
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

/// Finds out who holds the port, by connecting to it: the socket tells the credentials. To the holder, this is a
/// connector that leaves without a request.
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

/// Serves requests before it accepts more connectors. So if there are too many pending connectors, all of them have
/// sent nothing or are companions.
std::unique_ptr<Connection> ShmListener::try_accept(const Offer& offer) {
  check_offer("accept on", local_, offer);
  int obstacle = 0;
  if (auto connection = serve(offer, obstacle)) return connection;
  // Requests wait for descriptors: do not use those for more connectors.
  const bool starves = offer.departed && is_short_of_descriptors(obstacle);
  int refused = 0;
  if (!starves) {
    refused = take_connectors(offer);
    adapt_queue();
    if (auto connection = serve(offer, obstacle)) return connection;
  }
  // While requests wait, here or in the kernel's queue, their companions must stay.
  const bool companions = !offer.departed || (obstacle == 0 && !is_short_of_descriptors(refused));
  while (const auto late = pending_.take_late(Pending::Clock::now(), companions)) drop(late->peer, ETIMEDOUT);
  if (obstacle == 0) obstacle = refused;
  if (obstacle == 0) return nullptr;
  throw Error(obstacle, "accept on", local_.to_string(), advice_on(obstacle, "accept"));
}

/// Takes connectors from the kernel's queue, and drops those of other users. Returns 0, or the errno value for which it
/// could not take more.
int ShmListener::take_connectors(const Offer& offer) {
  const std::size_t most = offer.departed ? std::max(most_pending(), kLeastPending) : most_pending();
  const auto timeout = std::chrono::milliseconds(config::number(config::Key::connect_timeout));
  for (std::size_t taken = 0; taken < std::min(kMostAtOnce, most); ++taken) {
    if (offer.departed && pending_.size() >= most) {
      // Drops none that this call has taken: it may have sent its request already, and a connector that has left
      // messages does not come again.
      if (taken != 0) return 0;
      const std::optional<Pending> silent = pending_.take_silent();
      if (!silent) return ENOBUFS;  // until the timeout of a companion
      drop(silent->peer, ETIMEDOUT);
    }
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      const int error = errno;
      if (is_short_of_descriptors(error) && !offer.departed) refuse_connectors();
      return error == EAGAIN ? 0 : error;
    }
    Peer peer = credentials(socket.get());
    if (!same_user(peer)) {
      strangers_.spend(StrangerBudget::Clock::now());
      drop(peer, EACCES);
      continue;
    }
    while (!offer.departed && pending_.size() >= most) drop(pending_.take_least_promising().peer, ETIMEDOUT);
    pending_.add(std::move(socket), std::move(peer), timeout);
  }
  return 0;
}

/// Sets the length of the kernel's queue. Not in a forked child: calling listen() there would make the child the
/// process that connectors see.
void ShmListener::adapt_queue() {
  const int wanted = strangers_.queue_length(StrangerBudget::Clock::now());
  if (wanted == queue_length_ || origin_.inherited()) return;
  if (::listen(socket_.get(), wanted) == 0) queue_length_ = wanted;
}

/// Refuses connectors when no descriptor is free, so that they can try again. Many may belong to this process, and hold
/// the descriptors that are missing to accept one of them.
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

/// Accepts the first connector that has sent a valid request. Sets `obstacle` to an errno value if a failure of this
/// side kept one from being accepted.
std::unique_ptr<Connection> ShmListener::serve(const Offer& offer, int& obstacle) {
  pending_.look();
  while (Pending* ready = pending_.next_ready()) {
    Packet packet;
    std::uint64_t companion = 0;
    const int error = look_at_request(ready->socket.get(), packet, companion);
    if (error == EAGAIN) continue;
    if (ready->companion != 0) {
      heard_of_companion(*ready, error, offer);
      continue;
    }
    if (companion != 0) {
      ready->companion = companion;
      take_request(ready->socket.get());
      continue;
    }
    if (error == EPROTO) {
      refuse(pending_.take(*ready).peer, kMalformed);
      continue;
    }
    if (error == EMFILE || error == ENOMEM || error == ENOBUFS) {
      obstacle = error;
      if (waits(*ready, error, offer)) continue;
    }
    if (error != 0) {
      drop(take(*ready, packet.hello.companion).peer, error);
      continue;
    }
    if (auto connection = answer(*ready, std::move(packet), offer, obstacle)) return connection;
  }
  return nullptr;
}

/// Handles an event on a companion that has announced itself. Only its end may follow, perhaps before its request is
/// read.
void ShmListener::heard_of_companion(Pending& companion, int error, const Offer& offer) {
  if (error != ECONNRESET) return refuse(pending_.take(companion).peer, kMalformed);
  if (offer.departed) return pending_.silence(companion);
  drop(pending_.take(companion).peer, error);
}

/// Whether a request that this process has no resources to answer stays in its socket. That is so if departed
/// connectors are accepted: a connector that has left messages and ended does not come again. Otherwise the connector
/// is refused and can try again: many may belong to this process, and hold the descriptors that are missing.
bool ShmListener::waits(Pending& ready, int error, const Offer& offer) {
  ready.waits = offer.departed && (is_short_of_descriptors(error) || Pending::Clock::now() < ready.give_up);
  return ready.waits;
}

/// Removes a connector from the pending ones, with its companion if it has one.
ShmListener::Taken ShmListener::take(Pending& ready, std::uint64_t companion) {
  Pending pending = pending_.take(ready);
  UniqueFd other;
  if (companion != 0) other = pending_.take_companion(companion, pending.peer);
  return {.socket = std::move(pending.socket), .companion = std::move(other), .peer = std::move(pending.peer)};
}

/// Logs that a connector was dropped. That is not an error of this side; the connector sees the end of its socket.
void ShmListener::drop(const Peer& peer, int error) const {
  if (!log::enabled(log::Level::info)) return;
  log::write(log::Level::info, "dropped a connector to " + local_.to_string() + ", process " +
                                   std::to_string(peer.pid) + " of user " + std::to_string(peer.uid) + ": " +
                                   std::generic_category().message(error));
}

/// Logs that a connector of this user broke the handshake and was refused.
void ShmListener::refuse(const Peer& peer, const std::string& reason) {
  warnings_.write(log::Level::warning, "refused a connector to " + local_.to_string() + ", process " +
                                           std::to_string(peer.pid) + ": " + reason +
                                           "; use one version of Wherry on both sides");
}

std::unique_ptr<Connection> ShmListener::answer(Pending& ready, Packet packet, const Offer& offer, int& obstacle) {
  const layout::ShmHello request = packet.hello;
  // A companion is connected and announced before its request.
  if (request.companion != 0 && !pending_.has_companion(request.companion, ready.peer)) {
    drop(pending_.take(ready).peer, EPROTO);  // or it has left, as a mailbox does whose peer connects to it
    return nullptr;
  }
  if (const char* reason = objection_to(request, offer); reason != nullptr) {
    refuse(take(ready, request.companion).peer, reason);
    return nullptr;
  }
  std::optional<OwnSide> own;
  std::optional<PeersSide> peers;
  try {
    own.emplace(offer);
    // The peer's half is checked before anything is sent to the peer.
    peers.emplace(std::move(packet), shm_address(request.node, request.port));
  } catch (const Error& error) {
    const int number = error.code().value();
    if (number == EPROTO) {
      refuse(take(ready, request.companion).peer, "its memory is not a sealed memfd of the size announced");
      return nullptr;
    }
    obstacle = number;
    if (waits(ready, number, offer)) return nullptr;
    drop(take(ready, request.companion).peer, number);
    throw;
  }
  return connect(take(ready, request.companion), request, std::move(*own), std::move(*peers), offer);
}

std::unique_ptr<Connection> ShmListener::connect(Taken taken, const layout::ShmHello& request, OwnSide own,
                                                 PeersSide peers, const Offer& offer) {
  take_request(taken.socket.get());
  taken.peer.address = shm_address(request.node, request.port);
  const layout::ShmHello hello = own.hello(*local_.node, *local_.port);
  const auto descriptors = own.descriptors();
  const int socket = taken.socket.get();
  auto connection = std::make_unique<ShmConnection>(std::move(own), std::move(peers), std::move(taken.socket),
                                                    taken.peer, std::move(taken.companion));
  if (const int error = send_packet(socket, hello, descriptors); error != 0) {
    const bool departed = error == EPIPE || error == ECONNRESET;
    if (departed && offer.departed) return connection;
    drop(taken.peer, error);
    if (departed) return nullptr;
    throw Error(error, "answer a connector to", local_.to_string(), advice_on(error, "sendmsg"));
  }
  connection->handed_over();
  return connection;
}

}  // namespace wherry::fabric::shm
