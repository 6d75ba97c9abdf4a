// SPDX-License-Identifier: Apache-2.0
// ZeroMQ: PUSH/PULL over its tcp and ipc transports (PAIR to and fro).
#include <zmq.h>

#include <array>
#include <cerrno>

#include "bench/systems/libraries/library.hpp"

namespace wherry::bench {
namespace {

void check(bool ok, const char* what) { require(ok, what, zmq_strerror(zmq_errno())); }

class ZmqLink final : public Link {
 public:
  ZmqLink(const Place& place, const std::string& address) : size_(place.sample.size) {
    check(context_ != nullptr, "zmq_ctx_new");
    socket_ = zmq_socket(context_, socket_type(place));
    check(socket_ != nullptr, "zmq_socket");
    const int queued = queue_length(place.sample);
    check(zmq_setsockopt(socket_, ZMQ_SNDHWM, &queued, sizeof queued) == 0, "ZMQ_SNDHWM");
    check(zmq_setsockopt(socket_, ZMQ_RCVHWM, &queued, sizeof queued) == 0, "ZMQ_RCVHWM");
    zmq_msg_init(&incoming_);
    if (place.receives()) {
      bind(place, address);
    } else {
      check(zmq_connect(socket_, place.exchange.read(0).c_str()) == 0, "zmq_connect");
    }
    greet(*this, place);
  }

  ~ZmqLink() override {
    zmq_msg_close(&incoming_);
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }

  std::span<std::byte> prepare() override {
    check(zmq_msg_init_size(&outgoing_, size_) == 0, "zmq_msg_init_size");
    return {static_cast<std::byte*>(zmq_msg_data(&outgoing_)), size_};
  }

  void send() override {
    while (zmq_msg_send(&outgoing_, socket_, 0) < 0) check(zmq_errno() == EINTR, "zmq_msg_send");
  }

  std::span<const std::byte> receive() override {
    while (zmq_msg_recv(&incoming_, socket_, 0) < 0) check(zmq_errno() == EINTR, "zmq_msg_recv");
    return {static_cast<const std::byte*>(zmq_msg_data(&incoming_)), zmq_msg_size(&incoming_)};
  }

 private:
  static int socket_type(const Place& place) {
    if (place.sample.question != Question::stream) return ZMQ_PAIR;
    return place.receives() ? ZMQ_PULL : ZMQ_PUSH;
  }

  void bind(const Place& place, const std::string& address) {
    check(zmq_bind(socket_, address.c_str()) == 0, "zmq_bind");
    std::array<char, 256> endpoint{};
    std::size_t length = endpoint.size();
    check(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint.data(), &length) == 0, "ZMQ_LAST_ENDPOINT");
    place.exchange.post(0, endpoint.data());
  }

  std::size_t size_;
  void* context_ = zmq_ctx_new();
  void* socket_ = nullptr;
  zmq_msg_t incoming_{};
  zmq_msg_t outgoing_{};
};

class Zmq final : public LinkSystem {
 public:
  explicit Zmq(bool tcp) : tcp_(tcp) {}
  [[nodiscard]] std::string name() const override { return tcp_ ? "zmq-tcp" : "zmq-ipc"; }
  [[nodiscard]] std::string version() const override {
    int major = 0, minor = 0, patch = 0;
    zmq_version(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  [[nodiscard]] std::string settings() const override {
    return "PUSH/PULL (latency: PAIR), zmq_msg_init_size + zmq_msg_send, one I/O thread, high-water marks "
           "1 MB / size within 2..1000, malloc keeps what is freed";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  std::unique_ptr<Link> open(const Place& place) override {
    keep_freed_memory();
    // The kernel frees an abstract name (@) with its socket, however the process ends.
    return std::make_unique<ZmqLink>(place, tcp_ ? "tcp://" + place.host_or_loopback() + ":*" : "ipc://@" + place.name);
  }

 private:
  bool tcp_;
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  return wherry::bench::made_of<wherry::bench::Zmq>(true, false);
}
