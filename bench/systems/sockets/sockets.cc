// SPDX-License-Identifier: Apache-2.0
//
// TCP over the loopback interface and Unix stream sockets, as a program uses them that wants them fast: blocking write
// and read of whole messages, no delay, the kernel's own buffer sizes. One receiver of many senders asks epoll.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fcntl.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/harness/check.hpp"
#include "bench/harness/registry.hpp"
#include "bench/systems/sockets/descriptor_links.hpp"

namespace wherry::bench {
namespace {

/// What TCP and Unix sockets differ in.
struct Family {
  const char* name;
  const char* settings;
  int domain;
  /// A listening socket, and its address. The name is unique. `host`: an address of this host.
  UniqueFd (*listen)(const std::string& name, const std::string& host, sockaddr_storage& address, socklen_t& length);
};

UniqueFd listening_socket(int domain, const sockaddr_storage& address, socklen_t length) {
  UniqueFd socket(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(socket.valid(), "socket");
  check(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "bind");
  check(::listen(socket.get(), SOMAXCONN) == 0, "listen");
  return socket;
}

UniqueFd listen_tcp(const std::string& /*name*/, const std::string& host, sockaddr_storage& address,
                    socklen_t& length) {
  const sockaddr_in any{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::inet_addr(host.c_str())}, .sin_zero = {}};
  length = sizeof any;
  std::memcpy(&address, &any, length);
  UniqueFd socket = listening_socket(AF_INET, address, length);
  check(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  return socket;
}

UniqueFd listen_unix(const std::string& unique, const std::string& /*host*/, sockaddr_storage& address,
                     socklen_t& length) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  // Abstract (the name begins with a zero): the kernel frees it.
  unique.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + unique.size());
  std::memcpy(&address, &name, length);
  return listening_socket(AF_UNIX, address, length);
}

void no_delay(int socket) {
  const int on = 1;
  check(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
}

/// Opens and accepts connections of one family.
class Sockets {
 public:
  explicit Sockets(const Family& family) : family_(family) {}

  std::string listen(const std::string& name, const std::string& host) {
    sockaddr_storage address{};
    socklen_t length = 0;
    listening_ = family_.listen(name, host, address, length);
    return {reinterpret_cast<const char*>(&address), length};
  }
  [[nodiscard]] UniqueFd accept() const {
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    check(socket.valid(), "accept");
    if (family_.domain == AF_INET) no_delay(socket.get());
    return socket;
  }
  [[nodiscard]] UniqueFd connect(const std::string& address) const {
    UniqueFd socket(::socket(family_.domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check(socket.valid(), "socket");
    const auto* where = reinterpret_cast<const sockaddr*>(address.data());
    check(::connect(socket.get(), where, static_cast<socklen_t>(address.size())) == 0, "connect");
    if (family_.domain == AF_INET) no_delay(socket.get());
    return socket;
  }

 private:
  Family family_;
  UniqueFd listening_;
};

class SocketConnector final : public Connector {
 public:
  explicit SocketConnector(const Family& family) : sockets_(family) {}
  std::string listen(const std::string& name) override { return sockets_.listen(name, "127.0.0.1"); }
  void accept() override { open_.push_back(sockets_.accept()); }
  void connect(const std::string& where) override { open_.push_back(sockets_.connect(where)); }

 private:
  Sockets sockets_;
  std::vector<UniqueFd> open_;
};

class SocketSystem final : public LinkSystem {
 public:
  explicit SocketSystem(const Family& family) : family_(family) {}

  [[nodiscard]] std::string name() const override { return family_.name; }
  [[nodiscard]] std::string settings() const override { return family_.settings; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  [[nodiscard]] bool serves_idle() const override { return true; }
  std::unique_ptr<Connector> connector() override { return std::make_unique<SocketConnector>(family_); }

  std::unique_ptr<Link> open(const Place& place) override {
    const std::size_t size = place.sample.size;
    Sockets sockets(family_);
    if (!place.receives()) return sending(sockets, place);
    place.exchange.post(0, sockets.listen(place.name, place.host_or_loopback()));
    std::vector<UniqueFd> accepted;
    while (accepted.size() < place.connections()) accepted.push_back(sockets.accept());
    if (accepted.size() == 1) return single(std::move(accepted[0]), size);
    return std::make_unique<ManyDescriptorsLink>(std::move(accepted), size);
  }

 private:
  static std::unique_ptr<Link> sending(const Sockets& sockets, const Place& place) {
    std::vector<UniqueFd> idle;
    while (idle.size() < place.idle()) idle.push_back(sockets.connect(place.exchange.read(0)));
    return single(sockets.connect(place.exchange.read(0)), place.sample.size, std::move(idle));
  }
  static std::unique_ptr<Link> single(UniqueFd socket, std::size_t size, std::vector<UniqueFd> idle = {}) {
    UniqueFd again(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    check(again.valid(), "dup");
    return std::make_unique<DescriptorLink>(std::move(socket), std::move(again), size, std::move(idle));
  }

  Family family_;
};

}  // namespace

void add_sockets(Registry& registry) {
  registry.systems.push_back(std::make_unique<SocketSystem>(
      Family{"tcp", "loopback, TCP_NODELAY, the kernel's buffer sizes, blocking write and read; many: epoll", AF_INET,
             listen_tcp}));
  registry.systems.push_back(std::make_unique<SocketSystem>(Family{
      "unix", "stream socket, the kernel's buffer sizes, blocking write and read; many: epoll", AF_UNIX, listen_unix}));
}

}  // namespace wherry::bench
