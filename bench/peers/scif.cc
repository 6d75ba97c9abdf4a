// SPDX-License-Identifier: Apache-2.0
// SCIF as programs written for it use it: messages by send and recv, bulk by one-sided writes, reads and mapped stores.
// One-sided transfers are followed by a word that the other side looks at; nobody waits for the other to be ready, so
// what arrives is not read: hand-over alone.
#include <fcntl.h>
#include <sched.h>
#include <scif.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "bench/peers/peer.hpp"
#include "bench/systems/message_buffer.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kPage = 4096;

void check(bool holds, const char* what) {
  if (!holds) throw std::system_error(errno, std::system_category(), what);
}

class Endpoint {
 public:
  explicit Endpoint(const Place& place) : epd_(::scif_open()) {
    check(epd_ != SCIF_OPEN_FAILED, "scif_open");
    place.receives() ? accept_on(place) : connect_to(place);
  }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() { ::scif_close(epd_); }

  [[nodiscard]] scif_epd_t epd() const { return epd_; }
  void send(void* bytes, std::size_t size) const {
    check(::scif_send(epd_, bytes, static_cast<int>(size), SCIF_SEND_BLOCK) == static_cast<int>(size), "scif_send");
  }
  void receive(void* bytes, std::size_t size) const {
    check(::scif_recv(epd_, bytes, static_cast<int>(size), SCIF_RECV_BLOCK) == static_cast<int>(size), "scif_recv");
  }
  /// The offset of `memory` in this side's registered address space.
  [[nodiscard]] off_t share(std::span<std::byte> memory) const {
    const off_t offset =
        ::scif_register(epd_, memory.data(), memory.size(), 0, SCIF_PROT_READ | SCIF_PROT_WRITE, /*map_flags=*/0);
    check(offset != SCIF_REGISTER_FAILED, "scif_register");
    return offset;
  }
  /// What the peer's share() returned.
  [[nodiscard]] off_t exchange(off_t own) const {
    off_t peers = 0;
    send(&own, sizeof own);
    receive(&peers, sizeof peers);
    return peers;
  }

 private:
  void accept_on(const Place& place) {
    const scif_epd_t listener = epd_;
    const int port = ::scif_bind(listener, 0);
    check(port > 0, "scif_bind");
    check(::scif_listen(listener, 1) == 0, "scif_listen");
    place.board.post(0, std::to_string(port));
    scif_portID peer{};
    check(::scif_accept(listener, &peer, &epd_, SCIF_ACCEPT_SYNC) == 0, "scif_accept");
    ::scif_close(listener);
  }
  void connect_to(const Place& place) const {
    scif_portID server{.node = 0, .port = static_cast<std::uint16_t>(std::stoi(place.board.read(0)))};
    check(::scif_get_nodeIDs(nullptr, 0, &server.node) > 0, "scif_get_nodeIDs");
    check(::scif_connect(epd_, &server) > 0, "scif_connect");
  }

  scif_epd_t epd_;
};

class MessageLink final : public Link {
 public:
  explicit MessageLink(const Place& place) : endpoint_(place), out_(place.sample.size), in_(place.sample.size) {}

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { endpoint_.send(out_.span().data(), out_.size()); }
  std::span<const std::byte> receive() override {
    endpoint_.receive(in_.span().data(), in_.size());
    return in_.span();
  }

 private:
  Endpoint endpoint_;
  MessageBuffer out_;
  MessageBuffer in_;
};

enum class Way : std::uint8_t { writeto, vwriteto, readfrom, mapped };

/// Both sides register a page with a word in it, and the message behind it.
class RmaLink final : public Link {
 public:
  RmaLink(const Place& place, Way way)
      : endpoint_(place), way_(way), size_(place.sample.size), memory_(kPage + (size_ + kPage - 1) / kPage * kPage) {
    own_ = endpoint_.share(memory_.span());
    peers_ = endpoint_.exchange(own_);
    if (way_ == Way::mapped && !place.receives()) map();
  }
  ~RmaLink() override {
    if (mapped_ != nullptr) ::scif_munmap(mapped_, memory_.size());
  }

  std::span<std::byte> prepare() override { return memory_.span().subspan(kPage, size_); }

  void send() override {
    ++sent_;
    switch (way_) {
      case Way::writeto:
        check(::scif_writeto(endpoint_.epd(), own_ + kMessage, size_, peers_ + kMessage, 0) == 0, "scif_writeto");
        return tell();
      case Way::vwriteto:
        check(::scif_vwriteto(endpoint_.epd(), prepare().data(), size_, peers_ + kMessage, 0) == 0, "scif_vwriteto");
        return tell();
      case Way::mapped:
        std::memcpy(mapped_ + kPage, prepare().data(), size_);
        return reinterpret_cast<std::atomic<std::uint64_t>*>(mapped_)->store(sent_, std::memory_order_release);
      case Way::readfrom:
        return;  // the receiver fetches it
    }
  }

  std::span<const std::byte> receive() override {
    ++received_;
    if (way_ == Way::readfrom) {
      check(::scif_readfrom(endpoint_.epd(), own_ + kMessage, size_, peers_ + kMessage, SCIF_RMA_SYNC) == 0,
            "scif_readfrom");
    } else {
      const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.span().data());
      for (int looks = 0; word.load(std::memory_order_acquire) < received_; ++looks) {
        if (looks % 1024 == 1023) ::sched_yield();
      }
    }
    return memory_.span().subspan(kPage, size_);
  }

 private:
  static constexpr off_t kMessage = kPage;

  void tell() {
    check(::scif_fence_signal(endpoint_.epd(), 0, 0, peers_, sent_, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE) == 0,
          "scif_fence_signal");
  }
  void map() {
    void* start = ::scif_mmap(nullptr, memory_.size(), SCIF_PROT_READ | SCIF_PROT_WRITE, 0, endpoint_.epd(), peers_);
    check(start != SCIF_MMAP_FAILED, "scif_mmap");
    mapped_ = static_cast<std::byte*>(start);
  }

  Endpoint endpoint_;
  Way way_;
  std::size_t size_;
  MessageBuffer memory_;
  off_t own_ = 0;
  off_t peers_ = 0;
  std::byte* mapped_ = nullptr;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

class ScifMessages final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "scif"; }
  [[nodiscard]] std::string question() const override { return "scif"; }
  [[nodiscard]] std::string settings() const override { return "scif_send and scif_recv, both blocking"; }
  [[nodiscard]] bool can(const Sample& sample) const override { return sample.senders == 1; }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<MessageLink>(place); }
};

class ScifRma final : public LinkSystem {
 public:
  ScifRma(std::string name, std::string settings, Way way)
      : name_(std::move(name)), settings_(std::move(settings)), way_(way) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string question() const override { return "scif"; }
  [[nodiscard]] std::string settings() const override { return settings_; }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1 && !sample.touched;
  }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<RmaLink>(place, way_); }

 private:
  std::string name_;
  std::string settings_;
  Way way_;
};

}  // namespace

}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  using wherry::bench::ScifMessages;
  using wherry::bench::ScifRma;
  using wherry::bench::Way;
  static wherry::bench::Systems systems;
  systems.push_back(std::make_unique<ScifMessages>());
  systems.push_back(
      std::make_unique<ScifRma>("scif-writeto", "registered to registered, then scif_fence_signal", Way::writeto));
  systems.push_back(
      std::make_unique<ScifRma>("scif-vwriteto", "from any memory, then scif_fence_signal", Way::vwriteto));
  systems.push_back(std::make_unique<ScifRma>("scif-readfrom", "the receiver fetches", Way::readfrom));
  systems.push_back(std::make_unique<ScifRma>("scif-mmap", "memcpy into scif_mmap, then a word", Way::mapped));
  return &systems;
}
