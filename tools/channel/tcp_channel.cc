// SPDX-License-Identifier: Apache-2.0
//
// The reference transport: TCP as an optimized program uses it. One large staging buffer in each direction, few large
// system calls, TCP_NODELAY, the kernel's default buffer sizes.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "base/retry_schedule.hpp"
#include "base/unique_fd.hpp"
#include "channel/channel.hpp"

namespace wherry::tools {
namespace {

constexpr std::size_t kStagingBytes = 256 * 1024;

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort parse(const std::string& address, const char* operation) {
  const std::string rest = address.substr(kTcpScheme.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == rest.size()) {
    throw Error(EINVAL, operation, address, "write tcp://HOST:PORT, for example tcp://127.0.0.1:2000");
  }
  HostAndPort result{rest.substr(0, colon), rest.substr(colon + 1)};
  if (result.host.front() == '[' && result.host.back() == ']') result.host = result.host.substr(1, colon - 2);
  return result;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, FreeAddresses> resolve(const std::string& address, const char* operation, int flags) {
  const HostAndPort name = parse(address, operation);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const char* host = name.host == "*" ? nullptr : name.host.c_str();
  if (const int error = getaddrinfo(host, name.port.c_str(), &hints, &list); error != 0) {
    throw Error(EINVAL, operation, address, gai_strerror(error));
  }
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

std::string to_text(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return std::string(kTcpScheme) + "?";
  }
  const bool brackets = address.ss_family == AF_INET6;
  return std::string(kTcpScheme) + (brackets ? "[" : "") + host + (brackets ? "]:" : ":") + port;
}

class TcpChannel final : public Channel {
 public:
  TcpChannel(UniqueFd socket, std::string peer) : socket_(std::move(socket)), out_(kStagingBytes), in_(kStagingBytes) {
    peer_.address = std::move(peer);
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  std::span<std::byte> space() override {
    if (filled_ == out_.size()) flush();
    return std::span(out_).subspan(filled_);
  }

  void wrote(std::size_t bytes) override {
    filled_ += bytes;
    if (filled_ == out_.size()) flush();
  }

  void flush() override {
    for (std::size_t sent = 0; sent < filled_;) {
      const ssize_t n = ::send(socket_.get(), out_.data() + sent, filled_ - sent, MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR) fail("send");
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
    filled_ = 0;
  }

  void finish_sending() override {
    flush();
    // A peer that has everything it needs may be gone before it sees the end.
    if (::shutdown(socket_.get(), SHUT_WR) != 0 && errno != ENOTCONN) fail("send");
  }

  std::span<const std::byte> peek(Limit limit) override {
    if (taken_ == arrived_) {
      taken_ = arrived_ = 0;
      if (!limit || becomes_readable(*limit)) arrived_ = receive();
    }
    return std::span(in_).subspan(taken_, arrived_ - taken_);
  }

  void took(std::size_t bytes) override { taken_ += bytes; }

  void cancel() override {
    canceled_ = true;
    // Resets the connection, so that the peer sees a reset, not an end. Some kernels refuse this while a thread waits
    // on the socket. They permit a shutdown, and reset the connection at the close.
    const linger at_once{1, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const sockaddr nobody{AF_UNSPEC, {}};
    if (::connect(socket_.get(), &nobody, sizeof nobody) != 0) ::shutdown(socket_.get(), SHUT_RDWR);
  }
  [[nodiscard]] const ChannelPeer& peer() const override { return peer_; }

 private:
  [[nodiscard]] bool becomes_readable(std::chrono::milliseconds limit) const {
    pollfd polled{socket_.get(), POLLIN, 0};
    return ::poll(&polled, 1, static_cast<int>(limit.count())) > 0;
  }

  std::size_t receive() {
    for (;;) {
      const ssize_t n = ::recv(socket_.get(), in_.data(), in_.size(), 0);
      if (n > 0) return static_cast<std::size_t>(n);
      if (canceled_) fail("receive");
      if (n == 0) return 0;
      if (errno != EINTR) fail("receive");
    }
  }

  [[noreturn]] void fail(const char* operation) const {
    throw Error(canceled_ ? ECANCELED : errno, operation, peer_.address, "");
  }

  UniqueFd socket_;
  ChannelPeer peer_;
  std::atomic<bool> canceled_ = false;
  std::vector<std::byte> out_;
  std::size_t filled_ = 0;
  std::vector<std::byte> in_;
  std::size_t taken_ = 0;
  std::size_t arrived_ = 0;
};

/// Tries each of the host's addresses once. Invalid: all failed, `error` is that of the last.
UniqueFd try_connect(const std::string& address, int& error) {
  error = EINVAL;
  const auto list = resolve(address, "connect", 0);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    UniqueFd socket(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.valid() && ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return socket;
    error = errno;
  }
  return {};
}

class TcpListener final : public ChannelListener {
 public:
  explicit TcpListener(const std::string& address) {
    const auto list = resolve(address, "listen", AI_PASSIVE);
    socket_ = UniqueFd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket_.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0) {
      throw Error(errno, "listen", address, "choose another port (0: a free one) or an address of this machine");
    }
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    address_ = to_text(bound, length);
  }

  std::unique_ptr<Channel> try_accept() override {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    UniqueFd accepted(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
    if (accepted.valid()) return std::make_unique<TcpChannel>(std::move(accepted), to_text(from, length));
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      throw Error(errno, "accept", address_, "raise the limit of open files (ulimit -n)");
    }
    return nullptr;  // no peer waits, or it has gone again
  }
  [[nodiscard]] int descriptor() const override { return socket_.get(); }
  [[nodiscard]] std::string address() const override { return address_; }

 private:
  UniqueFd socket_;
  std::string address_;
};

}  // namespace

std::unique_ptr<ChannelListener> listen_tcp(const std::string& address) {
  return std::make_unique<TcpListener>(address);
}

std::unique_ptr<Channel> connect_tcp(const std::string& address, WaitNotice::Clock::time_point listener_by,
                                     WaitNotice& notice) {
  for (RetrySchedule schedule;; std::this_thread::sleep_until(schedule.next())) {
    int error = 0;
    if (UniqueFd socket = try_connect(address, error); socket.valid()) {
      return std::make_unique<TcpChannel>(std::move(socket), address);
    }
    if (error != ECONNREFUSED || !schedule.plan_next(listener_by)) {
      throw Error(error, "connect", address, "start the listener, or correct the address");
    }
    notice.print_if_due();
  }
}

}  // namespace wherry::tools
