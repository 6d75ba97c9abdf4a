// SPDX-License-Identifier: Apache-2.0
//
// Wherry's streams in shared memory, with their defaults; and with the message written where it will be read from.
#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <wherry/poller.hpp>
#include <wherry/wherry.hpp>

#include "bench/harness/message_buffer.hpp"
#include "bench/harness/registry.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::seconds kCallTimeout{20};

void moved(const Result& result) {
  if (result.ended()) throw std::runtime_error("the sender is gone");
  if (!result.ok()) throw std::system_error(result.error, std::system_category(), "stream");
}

/// How many messages of `size` until both a split copy and the ring have been tried (src/stream/split_choice.hpp), with
/// some to spare for those that went another way, as the first does when the receiver is late.
std::uint64_t tried_within(std::size_t size) {
  constexpr std::size_t kSmallest = std::size_t{64} << 10;
  constexpr std::size_t kHuge = std::size_t{64} << 20;  // A message of which is a trial by itself.
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  if (size < kSmallest) return 0;
  return size >= kHuge ? 6 : std::max<std::uint64_t>(kBytes / size, 10);
}

class StreamLink : public Link {
 public:
  StreamLink(Stream stream, std::size_t size) : stream_(std::move(stream)), out_(size), in_(size) {}

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { moved(stream_.send(out_.span())); }
  [[nodiscard]] std::uint64_t lap() const override { return (stream_.send_capacity() + size() - 1) / size(); }
  [[nodiscard]] std::uint64_t learns_within() const override { return tried_within(size()); }
  std::span<const std::byte> receive() override {
    moved(stream_.receive_all(in_.span()));
    return in_.span();
  }

 protected:
  Stream& stream() { return stream_; }
  [[nodiscard]] std::size_t size() const { return out_.size(); }

 private:
  Stream stream_;
  MessageBuffer out_;
  MessageBuffer in_;
};

/// Writes its messages in the receiver's ring.
class ReserveLink final : public StreamLink {
 public:
  using StreamLink::StreamLink;

  std::span<std::byte> prepare() override {
    Regions space = stream().reserve(size());
    if (space.size() < size()) {
      moved(stream().wait_writable(size(), kCallTimeout));
      space = stream().reserve(size());
    }
    return space.first;
  }
  void send() override { moved(stream().commit(size())); }
  [[nodiscard]] std::uint64_t learns_within() const override { return 0; }  // One way only.
};

/// From this size on a whole message is received by one call that blocks, which lets both sides copy it.
constexpr std::size_t kLarge = std::size_t{256} << 10;

/// Receives from many. Large messages one by one, all into one buffer; of smaller ones it takes what is there
/// from each that is ready, into a buffer of its own.
class ManyStreamsLink final : public Link {
 public:
  ManyStreamsLink(std::vector<Stream> streams, std::size_t size) {
    if (size >= kLarge) whole_.emplace(size);
    for (Stream& stream : streams) {
      const std::size_t number = senders_.size();
      poller_.add(senders_.emplace_back(std::move(stream), whole_ ? 0 : size).stream, number);
    }
  }

  std::span<std::byte> prepare() override { throw std::logic_error("this end only receives"); }
  void send() override { throw std::logic_error("this end only receives"); }

  std::span<const std::byte> receive() override {
    while (true) {
      while (next_ < count_) {
        Sender& sender = senders_[ready_[next_++]];
        if (whole_) {
          moved(sender.stream.receive_all(whole_->span()));
          return whole_->span();
        }
        if (sender.read_some()) return sender.buffer.span();
      }
      next_ = 0;
      count_ = poller_.wait(ready_);
    }
  }

 private:
  struct Sender {
    Sender(Stream from, std::size_t size) : stream(std::move(from)), buffer(size) {}
    /// True when a message is complete.
    bool read_some() {
      if (filled == buffer.size()) filled = 0;
      const Result result = stream.try_receive(buffer.span().subspan(filled));
      if (!result.would_block()) moved(result);
      filled += result.bytes;
      return filled == buffer.size();
    }
    Stream stream;
    MessageBuffer buffer;
    std::size_t filled = 0;
  };

  Poller poller_;
  std::optional<MessageBuffer> whole_;
  std::deque<Sender> senders_;
  std::array<Poller::Token, 64> ready_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

Stream connect_to(const Place& place) { return connect(place.exchange.read(0), {}, kCallTimeout); }

/// The sender's end where it has connections besides on which it sends nothing.
class AmongIdleLink final : public Link {
 public:
  AmongIdleLink(std::vector<Stream> idle, Stream busy, std::size_t size)
      : idle_(std::move(idle)), busy_(std::move(busy), size) {}

  std::span<std::byte> prepare() override { return busy_.prepare(); }
  void send() override { busy_.send(); }
  [[nodiscard]] std::uint64_t lap() const override { return busy_.lap(); }
  [[nodiscard]] std::uint64_t learns_within() const override { return busy_.learns_within(); }
  std::span<const std::byte> receive() override { return busy_.receive(); }

 private:
  std::vector<Stream> idle_;
  StreamLink busy_;
};

std::unique_ptr<Link> sending_link(const Place& place) {
  std::vector<Stream> idle;
  while (idle.size() < place.idle()) idle.push_back(connect_to(place));
  if (idle.empty()) return std::make_unique<StreamLink>(connect_to(place), place.sample.size);
  return std::make_unique<AmongIdleLink>(std::move(idle), connect_to(place), place.sample.size);
}

std::vector<Stream> accept_all(const Place& place, StreamOptions options) {
  Listener listener = listen(place.host.empty() ? "wherry+shm://*:*" : "wherry+ofi://*:*", options);
  place.exchange.post(0, listener.local().to_string());
  std::vector<Stream> streams;
  while (streams.size() < place.connections()) streams.push_back(listener.accept(kCallTimeout));
  return streams;
}

class StreamConnector final : public Connector {
 public:
  std::string listen(const std::string& /*name*/) override {
    listener_.emplace(wherry::listen("wherry+shm://*:*"));
    return listener_->local().to_string();
  }
  void accept() override { open_.push_back(listener_->accept(kCallTimeout)); }
  void connect(const std::string& where) override { open_.push_back(wherry::connect(where, {}, kCallTimeout)); }

 private:
  std::optional<Listener> listener_;
  std::vector<Stream> open_;
};

class StreamSystem final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "wherry"; }
  [[nodiscard]] std::string settings() const override {
    return "stream, defaults, blocking send and receive_all; many: Poller and try_receive";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  [[nodiscard]] bool serves_idle() const override { return true; }
  std::unique_ptr<Connector> connector() override { return std::make_unique<StreamConnector>(); }

  std::unique_ptr<Link> open(const Place& place) override {
    const std::size_t size = place.sample.size;
    if (!place.receives()) return sending_link(place);
    std::vector<Stream> streams = accept_all(place, {});
    if (streams.size() == 1) return std::make_unique<StreamLink>(std::move(streams[0]), size);
    return std::make_unique<ManyStreamsLink>(std::move(streams), size);
  }
};

class ReserveSystem final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "wherry-reserve"; }
  [[nodiscard]] std::string settings() const override {
    return "stream whose ring holds 4 messages, at least 1 MiB; reserve and commit, blocking receive_all: one copy";
  }
  /// A message in the ring must be in one piece: powers of two fit without a rest.
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1 && std::has_single_bit(sample.size) &&
           sample.size <= kLargestRing / 4;
  }

  std::unique_ptr<Link> open(const Place& place) override {
    const std::size_t size = place.sample.size;
    if (!place.receives()) return std::make_unique<ReserveLink>(connect_to(place), size);
    std::vector<Stream> streams = accept_all(place, {.ring_bytes = std::max<std::size_t>(4 * size, 1 << 20)});
    return std::make_unique<ReserveLink>(std::move(streams[0]), size);
  }

 private:
  static constexpr std::size_t kLargestRing = 1 << 30;
};

}  // namespace

void add_streams(Registry& registry) {
  registry.systems.push_back(std::make_unique<StreamSystem>());
  registry.systems.push_back(std::make_unique<ReserveSystem>());
}

}  // namespace wherry::bench
