// SPDX-License-Identifier: Apache-2.0
// nng: pair0 (push0/pull0 with many senders) over its tcp and ipc transports.
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "bench/harness/names.hpp"
#include "bench/systems/libraries/library.hpp"

namespace wherry::bench {
namespace {

void check(int error, const char* what) { require(error == 0, what, nng_strerror(error)); }

class NngLink final : public Link {
 public:
  NngLink(const Place& place, bool tcp) : size_(place.sample.size) {
    open_socket(place);
    check(nng_socket_set_size(socket_, NNG_OPT_RECVMAXSZ, 0), "NNG_OPT_RECVMAXSZ");
    if (place.receives()) {
      const std::string address =
          tcp ? "tcp://" + place.host_or_loopback() + ":" + std::to_string(free_port()) : "abstract://" + place.name;
      check(nng_listen(socket_, address.c_str(), nullptr, 0), "nng_listen");
      place.exchange.post(0, address);
    } else {
      check(nng_dial(socket_, place.exchange.read(0).c_str(), nullptr, 0), "nng_dial");
    }
    greet(*this, place);
  }

  ~NngLink() override {
    if (incoming_ != nullptr) nng_msg_free(incoming_);
    nng_close(socket_);
  }

  std::span<std::byte> prepare() override {
    check(nng_msg_alloc(&outgoing_, size_), "nng_msg_alloc");
    return {static_cast<std::byte*>(nng_msg_body(outgoing_)), size_};
  }

  void send() override { check(nng_sendmsg(socket_, outgoing_, 0), "nng_sendmsg"); }

  std::span<const std::byte> receive() override {
    if (incoming_ != nullptr) nng_msg_free(incoming_);
    incoming_ = nullptr;
    check(nng_recvmsg(socket_, &incoming_, 0), "nng_recvmsg");
    return {static_cast<const std::byte*>(nng_msg_body(incoming_)), nng_msg_len(incoming_)};
  }

 private:
  void open_socket(const Place& place) {
    if (place.sample.senders == 1) {
      check(nng_pair0_open(&socket_), "nng_pair0_open");
      if (place.sample.size < kQueuedBelow) queue_messages();
    } else if (place.receives()) {
      check(nng_pull0_open(&socket_), "nng_pull0_open");
    } else {
      check(nng_push0_open(&socket_), "nng_push0_open");
    }
  }

  // Without it each small message waits for the one before. Of large ones a queue leaves the cache.
  void queue_messages() {
    constexpr int kQueued = 128;
    check(nng_socket_set_int(socket_, NNG_OPT_SENDBUF, kQueued), "NNG_OPT_SENDBUF");
    check(nng_socket_set_int(socket_, NNG_OPT_RECVBUF, kQueued), "NNG_OPT_RECVBUF");
  }

  static constexpr std::size_t kQueuedBelow = 64 << 10;

  std::size_t size_;
  nng_socket socket_ = NNG_SOCKET_INITIALIZER;
  nng_msg* outgoing_ = nullptr;
  nng_msg* incoming_ = nullptr;
};

class Nng final : public LinkSystem {
 public:
  explicit Nng(bool tcp) : tcp_(tcp) {}
  [[nodiscard]] std::string name() const override { return tcp_ ? "nng-tcp" : "nng-ipc"; }
  [[nodiscard]] std::string version() const override { return nng_version(); }
  [[nodiscard]] std::string settings() const override {
    return "pair0 (many: push0/pull0), nng_msg_alloc + nng_sendmsg, NNG_OPT_RECVMAXSZ 0, "
           "NNG_OPT_SENDBUF and RECVBUF 128 below 64 KB";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<NngLink>(place, tcp_); }

 private:
  bool tcp_;
};

}  // namespace
}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  return wherry::bench::made_of<wherry::bench::Nng>(true, false);
}
