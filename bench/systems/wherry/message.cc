// SPDX-License-Identifier: Apache-2.0
// Wherry's messages: written in the publisher's pool, read there by the subscriber.
#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <wherry/wherry.hpp>

#include "bench/harness/registry.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::seconds kMessageTimeout{20};

/// Deep where the messages in flight fit the caches, so that neither side waits for the other's pace; as few as keep
/// both sides busy where they do not.
std::size_t queue_for(const Sample& sample) {
  if (!sample.touched || sample.size <= (64 << 10)) return sample.senders == 1 ? 16 : 8;
  return sample.size <= (1 << 20) ? 4 : 1;
}

void must_move(const Result& result) {
  if (result.ended()) throw std::runtime_error("the publisher is gone");
  if (!result.ok()) throw std::system_error(result.error, std::system_category(), "message");
}

/// What may be in flight, and what is being written.
std::size_t pool_bytes(const Sample& sample) {
  return 2 * queue_for(sample) * std::max<std::size_t>(sample.size, 4096);
}

class MessageLink final : public Link {
 public:
  explicit MessageLink(const Place& place)
      : size_(place.sample.size),
        lap_(pool_bytes(place.sample) / size_),
        publisher_({.pool_bytes = pool_bytes(place.sample), .prefault = place.sample.touched}),
        subscriber_({.queue = queue_for(place.sample), .prefault = place.sample.touched}) {
    const bool answers = place.sample.question != Question::stream;
    if (place.receives()) {
      subscriber_.listen("wherry+shm://*:*");
      place.exchange.post(0, subscriber_.local().to_string());
      subscriber_.admit(place.sample.senders, kMessageTimeout);
      if (answers) publisher_.connect(place.exchange.read(1), kMessageTimeout);
    } else {
      publisher_.connect(place.exchange.read(0), kMessageTimeout);
      if (!answers) return;
      subscriber_.listen("wherry+shm://*:*");
      place.exchange.post(1, subscriber_.local().to_string());
      subscriber_.admit(1, kMessageTimeout);
    }
  }

  [[nodiscard]] std::uint64_t lap() const override { return lap_; }
  std::span<std::byte> prepare() override {
    must_move(publisher_.loan(loan_, size_));
    return loan_.bytes();
  }
  void send() override { must_move(publisher_.publish(loan_)); }
  std::span<const std::byte> receive() override {
    must_move(subscriber_.take(message_));
    return message_.bytes();
  }

 private:
  std::size_t size_;
  std::uint64_t lap_;
  Publisher publisher_;
  Subscriber subscriber_;
  Loan loan_;
  Message message_;
};

class ZeroCopySystem final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "wherry-zerocopy"; }
  [[nodiscard]] std::string settings() const override {
    return "messages; queue of 16, of 4 where more than 64 KiB are touched, of 1 where more than 1 MiB; with many "
           "publishers of 8 in place of 16; pool of twice that, touched beforehand as others' buffers are; loan, "
           "publish, take";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  [[nodiscard]] bool in_place() const override { return true; }
  [[nodiscard]] bool prefaulted() const override { return true; }
  std::unique_ptr<Link> open(const Place& place) override { return std::make_unique<MessageLink>(place); }
};

}  // namespace

void add_messages(Registry& registry) { registry.systems.push_back(std::make_unique<ZeroCopySystem>()); }

}  // namespace wherry::bench
