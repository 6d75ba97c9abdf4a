// SPDX-License-Identifier: Apache-2.0
// The fabric between processes of one machine: no daemon, no setup, nothing left behind. See rendezvous.hpp for how two
// processes meet, memory.hpp for what they share, connection.hpp for how they talk.
#include <cerrno>

#include "base/config.hpp"
#include "base/refused_call.hpp"
#include "fabric/check.hpp"
#include "fabric/registry.hpp"
#include "fabric/shm/connection.hpp"
#include "fabric/shm/listener.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::string_view kName = "shm";

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
  check_own_user("connect to", address.to_string());
  const std::uint16_t node = *address.node;
  socket_ = make_socket("connect to", address.to_string());
  const SocketName name = socket_name(node, *address.port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
    // A full backlog is a refusal too: there is nothing to wait on.
    if (errno == EAGAIN) {
      throw QueueFull(ECONNREFUSED, "connect to", address.to_string(),
                      "too many connectors wait there already; try again, or accept faster");
    }
    fail(errno, "nobody listens on port " + std::to_string(*address.port) + " of node " + std::to_string(node) +
                    " in job '" + config::text(config::Key::job) + "'; start the listener first, or check WHERRY_JOB");
  }
  peer_ = credentials(socket_.get());
  peer_.address = shm_address(node, *address.port);
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
