// SPDX-License-Identifier: Apache-2.0
//
// The Wherry transport: the tools read files directly into the peer's ring, and write them directly out of their own.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <wherry/stream.hpp>

#include "channel/channel.hpp"

namespace wherry::tools {
namespace {

// Publishing bytes and returning credit may wake the peer, which costs a system call, and a context switch on both
// sides. A batch of a quarter of the ring leaves the other three quarters for the peer to work in.
std::size_t batch_of(std::size_t capacity) { return std::max<std::size_t>(capacity / 4, 1); }

// The regions that a stream shows, consumed piece by piece from the front.
template <class Byte>
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(const BasicRegions<Byte>& regions) : regions_(regions) {}

  [[nodiscard]] std::span<Byte> front() const {
    const std::size_t first = regions_.first.size();
    return used_ < first ? regions_.first.subspan(used_) : regions_.second.subspan(used_ - first);
  }
  [[nodiscard]] std::size_t used() const { return used_; }
  void use(std::size_t bytes) { used_ += bytes; }

 private:
  BasicRegions<Byte> regions_;
  std::size_t used_ = 0;
};

class StreamChannel final : public Channel {
 public:
  explicit StreamChannel(Stream stream) : stream_(std::move(stream)) {
    const Peer& peer = stream_.peer();
    peer_.address = peer.address.to_string();
    peer_.pid = peer.pid;
    if (peer.address.node) peer_.node = *peer.address.node;
    send_batch_ = batch_of(stream_.send_capacity());
    receive_batch_ = batch_of(stream_.receive_capacity());
  }

  std::span<std::byte> space() override {
    if (!space_.front().empty()) return space_.front();
    flush();
    Regions regions = stream_.reserve(stream_.send_capacity());
    // A few bytes of space are not worth a read of the file: waits for a whole batch.
    if (regions.size() < send_batch_) {
      do {
        check(stream_.wait_writable(send_batch_), "send");
        regions = stream_.reserve(stream_.send_capacity());
      } while (regions.empty());  // the peer died in between; wait_writable reports it
    }
    space_ = Pieces<std::byte>(regions);
    return space_.front();
  }

  void wrote(std::size_t bytes) override {
    space_.use(bytes);
    if (space_.used() >= send_batch_) flush();
  }

  void flush() override {
    if (space_.used() == 0) return;
    check(stream_.commit(space_.used()), "send");
    space_ = {};
  }

  void finish_sending() override {
    flush();
    // A peer that has everything it needs may be gone before it sees the end.
    if (const Result result = stream_.finish_sending(); result.error != EPIPE) check(result, "send");
  }

  std::span<const std::byte> peek(Limit limit) override {
    if (!arrived_.front().empty()) return arrived_.front();
    give_back();
    arrived_ = Pieces<const std::byte>(stream_.peek());
    if (arrived_.front().empty()) {
      const Result result = stream_.wait_readable(limit ? Timeout(*limit) : Timeout());
      if (result.ended() || (limit && result.error == ETIMEDOUT)) return {};
      check(result, "receive");
      arrived_ = Pieces<const std::byte>(stream_.peek());
    }
    return arrived_.front();
  }

  void took(std::size_t bytes) override {
    arrived_.use(bytes);
    if (arrived_.used() >= receive_batch_) give_back();
  }

  void cancel() override { stream_.cancel(); }
  [[nodiscard]] const ChannelPeer& peer() const override { return peer_; }

 private:
  void check(const Result& result, const char* operation) const {
    if (result.failed()) throw Error(result.error, operation, peer_.address, "");
  }

  void give_back() {
    if (arrived_.used() == 0) return;
    check(stream_.consume(arrived_.used()), "receive");
    arrived_ = {};
  }

  Stream stream_;
  ChannelPeer peer_;
  std::size_t send_batch_;
  std::size_t receive_batch_;
  Pieces<std::byte> space_;
  Pieces<const std::byte> arrived_;
};

class StreamListener final : public ChannelListener {
 public:
  explicit StreamListener(const std::string& address) : listener_(listen(address)) {}

  std::unique_ptr<Channel> try_accept() override {
    std::optional<Stream> stream = listener_.try_accept();
    return stream ? std::make_unique<StreamChannel>(std::move(*stream)) : nullptr;
  }
  [[nodiscard]] int descriptor() const override { return listener_.descriptor(); }
  [[nodiscard]] std::string address() const override { return listener_.local().to_string(); }

 private:
  Listener listener_;
};

}  // namespace

std::unique_ptr<ChannelListener> listen_stream(const std::string& address) {
  return std::make_unique<StreamListener>(address);
}

std::unique_ptr<Channel> connect_stream(const std::string& address, WaitNotice::Clock::time_point listener_by,
                                        WaitNotice::Clock::time_point accepted_by, WaitNotice& notice) {
  using Clock = WaitNotice::Clock;
  Connecting connecting = start_connect(address, {}, listener_by - Clock::now());
  while (true) {
    if (auto stream = connecting.try_finish()) return std::make_unique<StreamChannel>(std::move(*stream));
    const auto left = std::min(accepted_by, notice.due()) - Clock::now();
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Clock::duration::zero()));
    pollfd polled{connecting.descriptor(), POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min<std::int64_t>(milliseconds.count(), INT_MAX)));
    notice.print_if_due();
    if (ready == 0 && Clock::now() >= accepted_by) {
      throw Error(ETIMEDOUT, "connect to", address,
                  "somebody listens there but did not accept in time; wait longer (--wait, WHERRY_CONNECT_TIMEOUT)");
    }
  }
}

}  // namespace wherry::tools
