// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/control_connection.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <wherry/wherry.h>

#include "bench/systems/net/layout/control_frame.hpp"

namespace wherry::bench::net {
namespace {

using nlohmann::json;

constexpr const char* kEnded = "the program on the other host has ended";

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::system_category().message(errno)));
}

/// A program that ends may leave bytes unread: its end is then a reset or a broken pipe instead of an end of file.
[[noreturn]] void throw_failed(const std::string& what) {
  if (errno == ECONNRESET || errno == EPIPE) throw std::runtime_error(kEnded);
  throw_errno(what);
}

/// A silent host or cable ends the connection within half a minute, and no small frame waits for others.
void set_options(const UniqueFd& socket) {
  const auto set = [&](int level, int option, int value) {
    if (::setsockopt(socket.get(), level, option, &value, sizeof value) != 0) throw_errno("set options of a socket");
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

UniqueFd connected(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); error != 0) {
    throw std::runtime_error(fmt::format("{} has no IPv4 address: {}", host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    if (socket.valid() && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
  }
  const int error = errno;
  throw std::runtime_error(
      fmt::format("cannot connect to {}:{}: {}; start `wherry bench net --listen --port {}` there, and admit that TCP "
                  "port in its firewall",
                  host, port, std::system_category().message(error), port));
}

std::string address(const UniqueFd& socket, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in at{};
  socklen_t bytes = sizeof at;
  if (name(socket.get(), reinterpret_cast<sockaddr*>(&at), &bytes) != 0) throw_errno("the address of a host");
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &at.sin_addr, text.data(), text.size());
  return text.data();
}

}  // namespace

ControlConnection::ControlConnection(const std::string& host, std::uint16_t port)
    : ControlConnection(connected(host, port)) {}

ControlConnection::ControlConnection(UniqueFd socket)
    : socket_(std::move(socket)), own_(address(socket_, &::getsockname)), peer_(address(socket_, &::getpeername)) {
  set_options(socket_);
}

void ControlConnection::greet() const {
  constexpr std::chrono::seconds kLimit{10};
  send({{"hello", layout::kProtocol}, {"version", WHERRY_VERSION}});
  const json hello = receive(kLimit);
  if (hello.value("hello", 0) == layout::kProtocol) return;
  throw std::runtime_error(fmt::format(
      "the program at {} is no `wherry bench net` of this version ({}), but {}; install the same version of "
      "Wherry on both hosts",
      peer_, WHERRY_VERSION, hello.value("version", "another program")));
}

void ControlConnection::send(const json& frame) const {
  const std::string text = frame.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > layout::kMostBytes) throw std::runtime_error("a control frame is too long; use fewer messages");
  const layout::FrameHeader header{.magic = layout::kMagic, .bytes = static_cast<std::uint32_t>(text.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t done = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_failed(fmt::format("send to {}", peer_));
    sent += static_cast<std::size_t>(done);
  }
}

json ControlConnection::receive(std::chrono::seconds limit) const {
  layout::FrameHeader header;
  read(&header, sizeof header, limit);
  if (header.magic != layout::kMagic || header.bytes > layout::kMostBytes) {
    throw std::runtime_error("the program at " + peer_ + " is no `wherry bench net`");
  }
  std::string text(header.bytes, '\0');
  read(text.data(), text.size(), limit);
  json frame = json::parse(text, nullptr, false);
  if (!frame.is_object()) throw std::runtime_error("the program at " + peer_ + " sent no JSON object");
  return frame;
}

void ControlConnection::end_process_with_it() const {
  std::thread([descriptor = socket_.get()] {
    pollfd watched{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
    while (::poll(&watched, 1, -1) <= 0) continue;
    std::_Exit(1);
  }).detach();
}

void ControlConnection::read(void* to, std::size_t bytes, std::chrono::seconds limit) const {
  const bool limited = limit != std::chrono::seconds::max();
  const int milliseconds = limited ? static_cast<int>(std::chrono::milliseconds(limit).count()) : -1;
  for (std::size_t have = 0; have < bytes;) {
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, milliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw std::runtime_error(fmt::format("the other host did not answer for {} s", limit.count()));
    const ssize_t done = ::recv(socket_.get(), static_cast<char*>(to) + have, bytes - have, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_failed("receive from the other host");
    if (done == 0) throw std::runtime_error(kEnded);
    have += static_cast<std::size_t>(done);
  }
}

ControlListener::ControlListener(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int yes = 1;
  const sockaddr_in any{
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_ANY)}, .sin_zero = {}};
  if (!socket_.valid() || ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(socket_.get(), 1) != 0) {
    const int error = errno;
    throw std::runtime_error(fmt::format("cannot listen at TCP port {}: {}; choose another by --port on both hosts",
                                         port, std::system_category().message(error)));
  }
}

ControlConnection ControlListener::accept() const {
  for (;;) {
    UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.valid()) return ControlConnection(std::move(accepted));
    if (errno != EINTR && errno != ECONNABORTED) throw_errno("accept a connection");
  }
}

}  // namespace wherry::bench::net
