// SPDX-License-Identifier: Apache-2.0
// SCIF as programs written for it use it: messages by send and recv, bulk by one-sided writes, reads and mapped stores.
// One-sided transfers are followed by a word that the other side looks at; no side waits for the other to be ready, so
// what arrives is not read: hand-over alone.
#include <fcntl.h>
#include <sched.h>
#include <scif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include <optional>

#include "bench/harness/check.hpp"
#include "bench/harness/message_buffer.hpp"
#include "bench/systems/libraries/library.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kPage = 4096;

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
  /// Receives arrived bytes after scif_poll has reported them, as a program with several endpoints does.
  void poll_and_receive(std::span<std::byte> bytes) const {
    for (std::size_t got = 0; got < bytes.size();) {
      scif_pollepd polled{epd_, SCIF_POLLIN, 0};
      check(::scif_poll(&polled, 1, -1) == 1, "scif_poll");
      const int count = ::scif_recv(epd_, bytes.data() + got, static_cast<int>(bytes.size() - got), 0);
      check(count >= 0, "scif_recv");
      got += static_cast<std::size_t>(count);
    }
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
    place.exchange.post(0, std::to_string(port));
    scif_portID peer{};
    check(::scif_accept(listener, &peer, &epd_, SCIF_ACCEPT_SYNC) == 0, "scif_accept");
    ::scif_close(listener);
  }
  void connect_to(const Place& place) const {
    scif_portID server{.node = 0, .port = static_cast<std::uint16_t>(std::stoi(place.exchange.read(0)))};
    check(::scif_get_nodeIDs(nullptr, 0, &server.node) > 0, "scif_get_nodeIDs");
    check(::scif_connect(epd_, &server) > 0, "scif_connect");
  }

  scif_epd_t epd_;
};

enum class Waiting : std::uint8_t { receive, poll };

class MessageLink final : public Link {
 public:
  MessageLink(const Place& place, Waiting waiting)
      : endpoint_(place), waiting_(waiting), out_(place.sample.size), in_(place.sample.size) {}

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { endpoint_.send(out_.span().data(), out_.size()); }
  std::span<const std::byte> receive() override {
    if (waiting_ == Waiting::receive) {
      endpoint_.receive(in_.span().data(), in_.size());
    } else {
      endpoint_.poll_and_receive(in_.span());
    }
    return in_.span();
  }

 private:
  Endpoint endpoint_;
  Waiting waiting_;
  MessageBuffer out_;
  MessageBuffer in_;
};

/// Memory shared with forked children: it is not moved to where a peer could map it.
class InheritedBuffer {
 public:
  explicit InheritedBuffer(std::size_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    check(start_ != MAP_FAILED, "mmap");
    std::memset(start_, 1, bytes_);
  }
  InheritedBuffer(const InheritedBuffer&) = delete;
  InheritedBuffer& operator=(const InheritedBuffer&) = delete;
  ~InheritedBuffer() { ::munmap(start_, bytes_); }

  [[nodiscard]] std::span<std::byte> span() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  std::size_t bytes_;
  void* start_;
};

enum class Way : std::uint8_t { writeto, vwriteto, readfrom, mapped };

struct Means {
  Way way = Way::writeto;
  bool by_kernel = false;  ///< the peer's memory is an InheritedBuffer: the kernel copies
};

/// Both sides register a page with a word in it, and the message.
class RmaLink final : public Link {
 public:
  RmaLink(const Place& place, Means means)
      : endpoint_(place), means_(means), size_(place.sample.size), word_(kPage), private_(whole_pages(size_)) {
    if (means.by_kernel && place.receives() == (means.way != Way::readfrom)) shared_.emplace(whole_pages(size_));
    const bool any_memory = means.way == Way::vwriteto && !place.receives();
    own_ = any_memory ? 0 : endpoint_.share(memory());
    peers_ = endpoint_.exchange(own_);
    peers_word_ = endpoint_.exchange(endpoint_.share(word_.span()));
    if (means_.way == Way::mapped && !place.receives()) map();
  }
  ~RmaLink() override {
    if (mapped_ != nullptr) ::scif_munmap(mapped_, memory().size());
    if (mapped_word_ != nullptr) ::scif_munmap(mapped_word_, kPage);
  }

  std::span<std::byte> prepare() override { return memory().first(size_); }

  void send() override {
    ++sent_;
    switch (means_.way) {
      case Way::writeto:
        check(::scif_writeto(endpoint_.epd(), own_, size_, peers_, 0) == 0, "scif_writeto");
        return tell();
      case Way::vwriteto:
        check(::scif_vwriteto(endpoint_.epd(), memory().data(), size_, peers_, 0) == 0, "scif_vwriteto");
        return tell();
      case Way::mapped:
        std::memcpy(mapped_, memory().data(), size_);
        return reinterpret_cast<std::atomic<std::uint64_t>*>(mapped_word_)->store(sent_, std::memory_order_release);
      case Way::readfrom:
        return;  // the receiver fetches it
    }
  }

  std::span<const std::byte> receive() override {
    ++received_;
    if (means_.way == Way::readfrom) {
      check(::scif_readfrom(endpoint_.epd(), own_, size_, peers_, SCIF_RMA_SYNC) == 0, "scif_readfrom");
    } else {
      const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(word_.span().data());
      for (int looks = 0; word.load(std::memory_order_acquire) < received_; ++looks) {
        if (looks % 1024 == 1023) ::sched_yield();
      }
    }
    return prepare();
  }

 private:
  static std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
  [[nodiscard]] std::span<std::byte> memory() { return shared_ ? shared_->span() : private_.span(); }

  void tell() {
    constexpr int kFlags = SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE;
    check(::scif_fence_signal(endpoint_.epd(), 0, 0, peers_word_, sent_, kFlags) == 0, "scif_fence_signal");
  }
  [[nodiscard]] std::byte* map(off_t offset, std::size_t bytes) const {
    void* start = ::scif_mmap(nullptr, bytes, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, endpoint_.epd(), offset);
    check(start != SCIF_MMAP_FAILED, "scif_mmap");
    return static_cast<std::byte*>(start);
  }
  void map() {
    mapped_ = map(peers_, memory().size());
    mapped_word_ = map(peers_word_, kPage);
  }

  Endpoint endpoint_;
  Means means_;
  std::size_t size_;
  MessageBuffer word_;
  MessageBuffer private_;
  std::optional<InheritedBuffer> shared_;
  off_t own_ = 0;
  off_t peers_ = 0;
  off_t peers_word_ = 0;
  std::byte* mapped_ = nullptr;
  std::byte* mapped_word_ = nullptr;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

class ScifMessages final : public LinkSystem {
 public:
  ScifMessages(std::string name, std::string settings, Waiting waiting)
      : name_(std::move(name)), settings_(std::move(settings)), waiting_(waiting) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string question() const override { return "scif"; }
  [[nodiscard]] std::string settings() const override { return settings_; }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.senders == 1 && (waiting_ == Waiting::receive || sample.question == Question::latency);
  }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<MessageLink>(place, waiting_); }

 private:
  std::string name_;
  std::string settings_;
  Waiting waiting_;
};

class ScifRma final : public LinkSystem {
 public:
  ScifRma(std::string name, std::string settings, Means means)
      : name_(std::move(name)), settings_(std::move(settings)), means_(means) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string question() const override { return "scif"; }
  [[nodiscard]] std::string settings() const override { return settings_; }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1 && !sample.touched;
  }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<RmaLink>(place, means_); }

 private:
  std::string name_;
  std::string settings_;
  Means means_;
};

}  // namespace

}  // namespace wherry::bench

extern "C" wherry::bench::Systems* wherry_bench_systems() {
  using wherry::bench::ScifMessages;
  using wherry::bench::ScifRma;
  using wherry::bench::Waiting;
  using wherry::bench::Way;
  static wherry::bench::Systems systems;
  systems.push_back(std::make_unique<ScifMessages>("scif", "scif_send and scif_recv, both blocking", Waiting::receive));
  systems.push_back(std::make_unique<ScifMessages>(
      "scif-poll", "blocking scif_send; scif_poll, then scif_recv without blocking", Waiting::poll));
  const auto add = [](const char* name, const char* settings, wherry::bench::Means means) {
    systems.push_back(std::make_unique<ScifRma>(name, settings, means));
  };
  add("scif-writeto", "registered to registered, then scif_fence_signal", {Way::writeto});
  add("scif-vwriteto", "from any memory, then scif_fence_signal", {Way::vwriteto});
  add("scif-readfrom", "the receiver fetches", {Way::readfrom});
  add("scif-mmap", "memcpy into scif_mmap, then a word", {Way::mapped});
  add("scif-writeto-kernel", "into memory that cannot be mapped: the kernel copies", {Way::writeto, true});
  add("scif-readfrom-kernel", "from memory that cannot be mapped: the kernel copies", {Way::readfrom, true});
  return &systems;
}
