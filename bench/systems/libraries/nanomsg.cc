// SPDX-License-Identifier: Apache-2.0
// nanomsg: PAIR (PUSH/PULL with many senders) over its tcp and ipc transports.
#include <nanomsg/ipc.h>
#include <nanomsg/nn.h>
#include <nanomsg/pair.h>
#include <nanomsg/pipeline.h>
#include <nanomsg/tcp.h>

#include <cerrno>

#include "bench/harness/names.hpp"
#include "bench/systems/libraries/library.hpp"

namespace wherry::bench {
namespace {

void check(bool ok, const char* what) { require(ok, what, nn_strerror(nn_errno())); }

class NanomsgLink final : public Link {
 public:
  NanomsgLink(const Place& place, bool tcp) : size_(place.sample.size) {
    socket_ = nn_socket(AF_SP, protocol(place));
    check(socket_ >= 0, "nn_socket");
    const int any_size = -1;
    check(nn_setsockopt(socket_, NN_SOL_SOCKET, NN_RCVMAXSIZE, &any_size, sizeof any_size) == 0, "NN_RCVMAXSIZE");
    // Small packets must not wait for each other.
    const int at_once = 1;
    if (tcp) check(nn_setsockopt(socket_, NN_TCP, NN_TCP_NODELAY, &at_once, sizeof at_once) == 0, "NN_TCP_NODELAY");
    if (place.receives()) {
      bind(place, tcp);
    } else {
      check(nn_connect(socket_, place.exchange.read(0).c_str()) >= 0, "nn_connect");
    }
    greet(*this, place);
    if (!tcp) forget_path(place);
  }

  ~NanomsgLink() override {
    if (incoming_ != nullptr) nn_freemsg(incoming_);
    nn_close(socket_);
  }

  std::span<std::byte> prepare() override {
    outgoing_ = nn_allocmsg(size_, 0);
    check(outgoing_ != nullptr, "nn_allocmsg");
    return {static_cast<std::byte*>(outgoing_), size_};
  }

  void send() override {
    while (nn_send(socket_, static_cast<void*>(&outgoing_), NN_MSG, 0) < 0) check(nn_errno() == EINTR, "nn_send");
  }

  std::span<const std::byte> receive() override {
    if (incoming_ != nullptr) nn_freemsg(incoming_);
    incoming_ = nullptr;
    int length = 0;
    while ((length = nn_recv(socket_, static_cast<void*>(&incoming_), NN_MSG, 0)) < 0)
      check(nn_errno() == EINTR, "nn_recv");
    return {static_cast<const std::byte*>(incoming_), static_cast<std::size_t>(length)};
  }

 private:
  static int protocol(const Place& place) {
    if (place.sample.senders == 1) return NN_PAIR;
    return place.receives() ? NN_PULL : NN_PUSH;
  }

  void bind(const Place& place, bool tcp) {
    if (!tcp) path_ = temporary_path(place.name);
    const std::string address = tcp ? "tcp://127.0.0.1:" + std::to_string(free_port()) : "ipc://" + path_;
    check(nn_bind(socket_, address.c_str()) >= 0, "nn_bind");
    place.exchange.post(0, address);
  }

  /// When all are connected the name has served; from then on a process that is killed leaves nothing behind. The
  /// greetings do not tell: one sender's next message may come before another's first. But a sender that has sent is
  /// connected.
  void forget_path(const Place& place) {
    if (!place.receives()) return place.exchange.post(place.rank, "connected");
    for (std::uint32_t sender = 1; sender <= place.sample.senders; ++sender) place.exchange.read(sender);
    ::unlink(path_.c_str());
  }

  std::size_t size_;
  int socket_ = -1;
  std::string path_;  ///< of the ipc socket at the receiver
  void* outgoing_ = nullptr;
  void* incoming_ = nullptr;
};

class Nanomsg final : public LinkSystem {
 public:
  explicit Nanomsg(bool tcp) : tcp_(tcp) {}
  [[nodiscard]] std::string name() const override { return tcp_ ? "nanomsg-tcp" : "nanomsg-ipc"; }
  /// The library does not tell its version at run time, only that of its interface.
  [[nodiscard]] std::string version() const override { return WHERRY_NANOMSG_VERSION; }
  [[nodiscard]] std::string settings() const override {
    return "PAIR (many: PUSH/PULL), nn_allocmsg + nn_send(NN_MSG), NN_RCVMAXSIZE -1, malloc keeps what is freed";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  std::unique_ptr<Link> open(const Place& place) override {
    keep_freed_memory();
    return std::make_unique<NanomsgLink>(place, tcp_);
  }

 private:
  bool tcp_;
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  return wherry::bench::made_of<wherry::bench::Nanomsg>(true, false);
}
