// SPDX-License-Identifier: Apache-2.0
// The fabric between processes of one machine: no daemon, no setup, nothing left behind. See rendezvous.hpp for how two
// processes meet, memory.hpp for what they share, connection.hpp for how they talk.
#include <sys/epoll.h>

#include <cerrno>
#include <chrono>
#include <deque>

#include "base/beyond_select.hpp"
#include "base/config.hpp"
#include "base/log.hpp"
#include "fabric/check.hpp"
#include "fabric/registry.hpp"
#include "fabric/shm/connection.hpp"

namespace wherry::fabric::shm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kName = "shm";
constexpr std::uint16_t kFirstAutomaticPort = 1089;  ///< below are the ports SCIF reserves
constexpr std::size_t kMaxPendingHandshakes = 4096;

Address resolved(std::uint16_t node, std::uint16_t port) {
  Address address{.fabric = std::string(kName), .node = node, .port = {}};
  if (port != 0) address.port = port;
  return address;
}

class ShmListener final : public Listener {
 public:
  explicit ShmListener(const Address& wanted);

  std::unique_ptr<Connection> try_accept(const Offer& offer) override;
  [[nodiscard]] int descriptor() const override { return poller_.get(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  /// A connector whose request has not arrived yet. It comes right behind the connection, or never.
  struct Pending {
    UniqueFd socket;
    Peer peer;
    Clock::time_point give_up;
  };

  bool bind_port(std::uint16_t port);
  void bind_any_port();
  void watch(int fd);
  int take_connectors();
  std::unique_ptr<Connection> answer(Pending pending, Packet packet, const Offer& offer);
  void drop(const Pending& pending, int error) const;

  Address local_;
  UniqueFd socket_;
  UniqueFd poller_;
  std::deque<Pending> pending_;
};

ShmListener::ShmListener(const Address& wanted) : local_(resolved(node_to_bind(wanted), wanted.port.value_or(0))) {
  const std::string text = wanted.to_string();
  socket_ = make_socket("listen", text);
  if (!wanted.port) {
    bind_any_port();
  } else if (!bind_port(*wanted.port)) {
    throw Error(errno, "listen", text,
                "another process listens there (`wherry top` shows it); use another port, or * for a free one");
  }
  if (::listen(socket_.get(), SOMAXCONN) != 0) throw Error(errno, "listen", text, "");
  poller_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!poller_.valid()) throw Error(errno, "listen", text, "raise the limit of open files (ulimit -n)");
  watch(socket_.get());
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
  }
  throw Error(EADDRINUSE, "listen", local_.to_string(), "every port from 1089 up is taken; stop a listener");
}

void ShmListener::watch(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(poller_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw Error(errno, "listen", local_.to_string(), "");
}

/// Takes whom it can. Returns 0, or why it could not take all: an errno value.
int ShmListener::take_connectors() {
  while (pending_.size() < kMaxPendingHandshakes) {
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return errno == EAGAIN ? 0 : errno;
    }
    socket = beyond_select(std::move(socket));
    Peer peer = credentials(socket.get());
    if (!same_user(peer)) continue;
    watch(socket.get());
    const auto patience = std::chrono::milliseconds(config::number(config::Key::connect_timeout));
    pending_.push_back({std::move(socket), std::move(peer), Clock::now() + patience});
  }
  return 0;
}

std::unique_ptr<Connection> ShmListener::try_accept(const Offer& offer) {
  check_offer("accept on", local_, offer);
  int obstacle = take_connectors();
  for (auto it = pending_.begin(); it != pending_.end();) {
    Packet packet;
    const int error = receive_packet(it->socket.get(), packet);
    if (error == EAGAIN && Clock::now() < it->give_up) {
      ++it;
      continue;
    }
    Pending pending = std::move(*it);
    it = pending_.erase(it);
    ::epoll_ctl(poller_.get(), EPOLL_CTL_DEL, pending.socket.get(), nullptr);
    // Its descriptors did not fit into this process and are lost; the connector sees a refusal and may come again.
    if (error == EMFILE) obstacle = EMFILE;
    if (error != 0) {
      drop(pending, error == EAGAIN ? ETIMEDOUT : error);
      continue;
    }
    if (auto connection = answer(std::move(pending), std::move(packet), offer)) return connection;
  }
  if (pending_.size() == kMaxPendingHandshakes) {
    // All of them are silent. A newcomer, who keeps the descriptor readable, takes the place of the one silent longest.
    drop(pending_.front(), ETIMEDOUT);
    pending_.pop_front();
  }
  if (obstacle == 0) return nullptr;
  throw Error(obstacle, "accept on", local_.to_string(), "raise the limit of open files (ulimit -n), or close streams");
}

/// What a connector did wrong is no error of this side's: it is told by the socket's end, and the log.
void ShmListener::drop(const Pending& pending, int error) const {
  if (!log::enabled(log::Level::info)) return;
  log::write(log::Level::info, "dropped a connector to " + local_.to_string() + ", process " +
                                   std::to_string(pending.peer.pid) + ": " + std::generic_category().message(error));
}

std::unique_ptr<Connection> ShmListener::answer(Pending pending, Packet packet, const Offer& offer) {
  pending.peer.address = resolved(packet.hello.node, packet.hello.port);
  OwnSide own(offer);
  const layout::ShmHello hello = own.hello(*local_.node, *local_.port);
  const auto descriptors = own.descriptors();
  const int socket = pending.socket.get();
  std::unique_ptr<ShmConnection> connection;
  try {
    // The peer's half is checked before it hears anything.
    connection =
        std::make_unique<ShmConnection>(std::move(own), std::move(pending.socket), std::move(packet), pending.peer);
  } catch (const Error& error) {
    drop(pending, error.code().value());
    return nullptr;
  }
  if (const int error = send_packet(socket, hello, descriptors); error != 0) {
    drop(pending, error);
    return nullptr;
  }
  connection->handed_over();
  return connection;
}

class ShmConnecting final : public Connecting {
 public:
  ShmConnecting(const Address& address, const Offer& offer);

  std::unique_ptr<Connection> try_finish() override;
  [[nodiscard]] int descriptor() const override { return socket_.get(); }

 private:
  [[noreturn]] void fail(int error, const std::string& advice) const {
    throw Error(error, "connect to", address_.to_string(), advice);
  }

  Address address_;
  UniqueFd socket_;
  Peer peer_;
  OwnSide own_;
};

ShmConnecting::ShmConnecting(const Address& address, const Offer& offer) : address_(address), own_(offer) {
  const std::uint16_t node = *address.node;
  socket_ = make_socket("connect to", address.to_string());
  const SocketName name = socket_name(node, *address.port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
    // A full backlog is a refusal too: there is nothing to wait on.
    if (errno == EAGAIN) fail(ECONNREFUSED, "too many connectors wait there already; try again, or accept faster");
    fail(errno, "nobody listens on port " + std::to_string(*address.port) + " of node " + std::to_string(node) +
                    " in job '" + config::text(config::Key::job) + "'; start the listener first, or check WHERRY_JOB");
  }
  peer_ = credentials(socket_.get());
  peer_.address = resolved(node, *address.port);
  if (!same_user(peer_))
    fail(EACCES, "user " + std::to_string(peer_.uid) + " holds this name; choose another WHERRY_JOB");
  const int error = send_packet(socket_.get(), own_.hello(own_node(), 0), own_.descriptors());
  // A listener closed meanwhile shows as one or the other, by whether it had taken this connector off its queue.
  if (error == EPIPE || error == ECONNRESET) fail(ECONNREFUSED, "the listener has just closed");
  if (error != 0) fail(error, "the request could not be sent; too many connections may be under way at once");
}

std::unique_ptr<Connection> ShmConnecting::try_finish() {
  Packet packet;
  const int error = receive_packet(socket_.get(), packet);
  if (error == EAGAIN) return nullptr;
  if (error == ECONNRESET)
    fail(ECONNREFUSED, "the listener closed, or refused this connector (WHERRY_LOG=info there says why)");
  if (error == EMFILE) fail(EMFILE, "raise the limit of open files (ulimit -n), or close streams");
  if (error != 0) fail(error, "what answered does not speak this version of Wherry; use one version on both sides");
  auto connection =
      std::make_unique<ShmConnection>(std::move(own_), std::move(socket_), std::move(packet), std::move(peer_));
  connection->handed_over();
  return connection;
}

class ShmFabric final : public Fabric {
 public:
  [[nodiscard]] std::string_view name() const override { return kName; }
  std::unique_ptr<Listener> listen(const Address& address) override { return std::make_unique<ShmListener>(address); }
  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override {
    check_target(address);
    check_offer("connect to", address, offer);
    return std::make_unique<ShmConnecting>(address, offer);
  }
  std::shared_ptr<SharedMemory> share(std::size_t bytes) override { return std::make_shared<SharedMemory>(bytes); }
};

}  // namespace
}  // namespace wherry::fabric::shm

namespace wherry::fabric {

void register_shm(Registry& registry) { registry.add(std::make_unique<shm::ShmFabric>()); }

}  // namespace wherry::fabric
