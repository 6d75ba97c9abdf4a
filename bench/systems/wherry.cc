// SPDX-License-Identifier: Apache-2.0
//
// Wherry's streams in shared memory, with their defaults.
#include <poll.h>

#include <deque>
#include <stdexcept>
#include <vector>

#include <wherry/wherry.hpp>

#include "bench/systems/message_buffer.hpp"
#include "bench/systems/socket_io.hpp"
#include "bench/systems/systems.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::seconds kPatience{20};

void moved(const Result& result) {
  if (!result.ok()) throw std::runtime_error("stream: " + std::system_category().message(result.error));
}

class StreamLink final : public Link {
 public:
  StreamLink(Stream stream, std::size_t size) : stream_(std::move(stream)), out_(size), in_(size) {}

  std::span<std::byte> prepare() override { return out_.span(); }
  void send() override { moved(stream_.send(out_.span())); }
  std::span<const std::byte> receive() override {
    moved(stream_.receive_all(in_.span()));
    return in_.span();
  }

 private:
  Stream stream_;
  MessageBuffer out_;
  MessageBuffer in_;
};

/// Receives from many: takes what is there of whoever has something, each into a buffer of its own.
class ManyStreamsLink final : public Link {
 public:
  ManyStreamsLink(std::vector<Stream> streams, std::size_t size) {
    for (Stream& stream : streams) {
      const Sender& sender = senders_.emplace_back(std::move(stream), size);
      polled_.push_back({sender.descriptor, POLLIN, 0});
    }
    next_ = polled_.size();
  }

  std::span<std::byte> prepare() override { throw std::logic_error("only receives"); }
  void send() override { throw std::logic_error("only receives"); }

  std::span<const std::byte> receive() override {
    while (true) {
      for (; next_ < polled_.size(); ++next_) {
        if ((polled_[next_].revents & POLLIN) == 0) continue;
        if (senders_[next_].read_some()) return senders_[next_++].buffer.span();
      }
      check(::poll(polled_.data(), polled_.size(), -1) > 0 || errno == EINTR, "poll");
      next_ = 0;
    }
  }

 private:
  struct Sender {
    Sender(Stream from, std::size_t size)
        : stream(std::move(from)), descriptor(stream.receive_descriptor()), buffer(size) {}
    /// True when a message is complete.
    bool read_some() {
      if (filled == buffer.span().size()) filled = 0;
      const Result result = stream.try_receive(buffer.span().subspan(filled));
      if (!result.would_block()) moved(result);
      filled += result.bytes;
      return filled == buffer.span().size();
    }
    Stream stream;
    int descriptor;
    MessageBuffer buffer;
    std::size_t filled = 0;
  };

  std::deque<Sender> senders_;
  std::vector<pollfd> polled_;
  std::size_t next_ = 0;
};

class WherrySystem final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "wherry"; }
  [[nodiscard]] std::string settings() const override {
    return "stream, defaults, blocking send and receive_all; many: poll and try_receive";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }

  std::unique_ptr<Link> open(const Place& place) override {
    if (!place.receives()) {
      return std::make_unique<StreamLink>(connect(place.board.read(0), {}, kPatience), place.sample.size);
    }
    Listener listener = listen("wherry+shm://*:*");
    place.board.post(0, listener.local().to_string());
    std::vector<Stream> streams;
    while (streams.size() < place.sample.senders) streams.push_back(listener.accept(kPatience));
    if (streams.size() == 1) return std::make_unique<StreamLink>(std::move(streams[0]), place.sample.size);
    return std::make_unique<ManyStreamsLink>(std::move(streams), place.sample.size);
  }
};

}  // namespace

void add_wherry(Systems& systems) { systems.push_back(std::make_unique<WherrySystem>()); }

}  // namespace wherry::bench
