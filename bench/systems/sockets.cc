// SPDX-License-Identifier: Apache-2.0
//
// TCP over the loopback interface and Unix stream sockets, as a program uses them that wants them fast: blocking write
// and read of whole messages, no delay, the kernel's own buffer sizes. One receiver of many senders asks epoll.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/systems/message_buffer.hpp"
#include "bench/systems/socket_io.hpp"
#include "bench/systems/systems.hpp"

namespace wherry::bench {
namespace {

/// One end of a single connection.
class SocketLink final : public Link {
 public:
  SocketLink(UniqueFd socket, std::size_t size) : socket_(std::move(socket)), out_(size), in_(size) {}

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { write_all_to(socket_.get(), out_.span()); }
  std::span<const std::byte> receive() override {
    read_all_from(socket_.get(), in_.span());
    return in_.span();
  }

 private:
  UniqueFd socket_;
  MessageBuffer out_;
  MessageBuffer in_;
};

/// Receives from many: reads what is there of whoever is ready, each into a buffer of its own.
class ManySocketsLink final : public Link {
 public:
  ManySocketsLink(std::vector<UniqueFd> sockets, std::size_t size) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    check(epoll_.valid(), "epoll_create1");
    for (UniqueFd& socket : sockets) {
      Sender& sender = senders_.emplace_back(std::move(socket), size);
      epoll_event event{.events = EPOLLIN, .data = {.ptr = &sender}};
      check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sender.socket.get(), &event) == 0, "epoll_ctl");
    }
  }

  std::span<std::byte> prepare() override { throw std::logic_error("only receives"); }
  void send() override { throw std::logic_error("only receives"); }

  std::span<const std::byte> receive() override {
    while (true) {
      while (next_ < ready_) {
        Sender& sender = *static_cast<Sender*>(events_[next_++].data.ptr);
        if (sender.read_some()) return sender.buffer.span();
      }
      const int ready = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), -1);
      check(ready > 0 || errno == EINTR, "epoll_wait");
      next_ = 0;
      ready_ = ready > 0 ? static_cast<std::size_t>(ready) : 0;
    }
  }

 private:
  struct Sender {
    Sender(UniqueFd from, std::size_t size) : socket(std::move(from)), buffer(size) {}
    /// True when a message is complete.
    bool read_some() {
      if (filled == buffer.span().size()) filled = 0;
      const std::span<std::byte> rest = buffer.span().subspan(filled);
      const ssize_t n = ::recv(socket.get(), rest.data(), rest.size(), MSG_DONTWAIT);
      if (n == 0) throw std::runtime_error("a sender is gone");
      check(n > 0 || errno == EAGAIN, "recv");
      if (n > 0) filled += static_cast<std::size_t>(n);
      return filled == buffer.span().size();
    }
    UniqueFd socket;
    MessageBuffer buffer;
    std::size_t filled = 0;
  };

  UniqueFd epoll_;
  std::deque<Sender> senders_;
  std::array<epoll_event, 64> events_{};
  std::size_t next_ = 0;
  std::size_t ready_ = 0;
};

/// What TCP and Unix sockets differ in.
struct Family {
  const char* name;
  const char* settings;
  int domain;
  /// A listening socket, and the address to post.
  UniqueFd (*listen)(const Place& place, sockaddr_storage& address, socklen_t& length);
};

UniqueFd listening_socket(int domain, const sockaddr_storage& address, socklen_t length) {
  UniqueFd socket(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(socket.valid(), "socket");
  check(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "bind");
  check(::listen(socket.get(), SOMAXCONN) == 0, "listen");
  return socket;
}

UniqueFd listen_tcp(const Place& /*place*/, sockaddr_storage& address, socklen_t& length) {
  const sockaddr_in any{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  length = sizeof any;
  std::memcpy(&address, &any, length);
  UniqueFd socket = listening_socket(AF_INET, address, length);
  check(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  return socket;
}

UniqueFd listen_unix(const Place& place, sockaddr_storage& address, socklen_t& length) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  // Abstract (the name begins with a zero): the kernel frees it.
  place.name.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + place.name.size());
  std::memcpy(&address, &name, length);
  return listening_socket(AF_UNIX, address, length);
}

void no_delay(int socket) {
  const int on = 1;
  check(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
}

class SocketSystem final : public LinkSystem {
 public:
  explicit SocketSystem(const Family& family) : family_(family) {}

  [[nodiscard]] std::string name() const override { return family_.name; }
  [[nodiscard]] std::string settings() const override { return family_.settings; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }

  std::unique_ptr<Link> open(const Place& place) override {
    if (!place.receives()) return std::make_unique<SocketLink>(connect(place), place.sample.size);
    std::vector<UniqueFd> sockets = accept(place);
    if (sockets.size() == 1) return std::make_unique<SocketLink>(std::move(sockets[0]), place.sample.size);
    return std::make_unique<ManySocketsLink>(std::move(sockets), place.sample.size);
  }

 private:
  std::vector<UniqueFd> accept(const Place& place) {
    sockaddr_storage address{};
    socklen_t length = 0;
    const UniqueFd listening = family_.listen(place, address, length);
    place.board.post(0, {reinterpret_cast<const char*>(&address), length});
    std::vector<UniqueFd> sockets;
    while (sockets.size() < place.sample.senders) {
      sockets.emplace_back(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      check(sockets.back().valid(), "accept");
      if (family_.domain == AF_INET) no_delay(sockets.back().get());
    }
    return sockets;
  }

  UniqueFd connect(const Place& place) {
    const std::string address = place.board.read(0);
    UniqueFd socket(::socket(family_.domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check(socket.valid(), "socket");
    const auto* where = reinterpret_cast<const sockaddr*>(address.data());
    check(::connect(socket.get(), where, static_cast<socklen_t>(address.size())) == 0, "connect");
    if (family_.domain == AF_INET) no_delay(socket.get());
    return socket;
  }

  Family family_;
};

}  // namespace

void add_sockets(Systems& systems) {
  systems.push_back(std::make_unique<SocketSystem>(
      Family{"tcp", "loopback, TCP_NODELAY, the kernel's buffer sizes, blocking write and read; many: epoll", AF_INET,
             listen_tcp}));
  systems.push_back(std::make_unique<SocketSystem>(Family{
      "unix", "stream socket, the kernel's buffer sizes, blocking write and read; many: epoll", AF_UNIX, listen_unix}));
}

}  // namespace wherry::bench
