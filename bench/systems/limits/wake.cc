// SPDX-License-Identifier: Apache-2.0
//
// How soon one core can know what another did: a cache line that both look at, a futex, an eventfd. No payload moves.
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/unique_fd.hpp"
#include "bench/harness/check.hpp"
#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

struct alignas(arch::kCacheLine) Word {
  std::atomic<std::uint32_t> value = 0;
};

/// One word each way, by the writer's rank.
struct Words {
  Word of[2];
};

/// Has a buffer only because a message must be shown.
class WordLink : public Link {
 public:
  WordLink(Words& words, std::uint32_t rank, std::size_t size)
      : mine_(words.of[rank].value), other_(words.of[1 - rank].value), buffer_(size) {}

  std::span<std::byte> prepare() override { return buffer_.span(); }
  void send() override { mine_.store(++sent_, std::memory_order_release); }
  std::span<const std::byte> receive() override {
    ++received_;
    wait();
    return buffer_.span();
  }

 protected:
  virtual void wait() {
    spin_until([this] { return arrived(); });
  }
  [[nodiscard]] bool arrived() const { return other_.load(std::memory_order_acquire) == received_; }
  [[nodiscard]] std::atomic<std::uint32_t>& mine() { return mine_; }
  [[nodiscard]] std::atomic<std::uint32_t>& other() { return other_; }
  [[nodiscard]] std::uint32_t before() const { return received_ - 1; }

 private:
  std::atomic<std::uint32_t>& mine_;
  std::atomic<std::uint32_t>& other_;
  MessageBuffer buffer_;
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
};

class FutexLink final : public WordLink {
 public:
  using WordLink::WordLink;
  void send() override {
    WordLink::send();
    futex(mine(), FUTEX_WAKE, 1);
  }

 private:
  void wait() override {
    while (!arrived()) futex(other(), FUTEX_WAIT, before());
  }
  static void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
  }
};

class EventLink final : public Link {
 public:
  EventLink(int mine, int other, std::size_t size) : mine_(mine), other_(other), buffer_(size) {}

  std::span<std::byte> prepare() override { return buffer_.span(); }
  void send() override { check(::eventfd_write(mine_, 1) == 0, "eventfd_write"); }
  std::span<const std::byte> receive() override {
    eventfd_t value = 0;
    check(::eventfd_read(other_, &value) == 0, "eventfd_read");
    return buffer_.span();
  }

 private:
  int mine_;
  int other_;
  MessageBuffer buffer_;
};

/// Larger messages would be as fast: no payload is copied.
constexpr std::size_t kLargest = 64;

template <class Kind>
class WakeByWord final : public Limit<Words> {
 public:
  WakeByWord(std::string name, std::string settings, bool sleeps)
      : Limit(std::move(name), std::move(settings)), sleeps_(sleeps) {}

  [[nodiscard]] bool can(const Sample& sample) const override {
    const bool asked = sample.question == Question::latency || (sample.question == Question::asleep && sleeps_);
    return asked && sample.size <= kLargest && !sample.touched;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    return std::make_unique<Kind>(control(), place.rank, place.sample.size);
  }

 private:
  bool sleeps_;
};

class WakeByEvent final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "limit:eventfd"; }
  [[nodiscard]] std::string settings() const override { return "one eventfd each way, blocking write and read"; }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question != Question::stream && sample.size <= kLargest && !sample.touched;
  }
  Outcome run(const Sample& sample) override {
    for (UniqueFd& event : events_) {
      event.reset(::eventfd(0, EFD_CLOEXEC));
      check(event.valid(), "eventfd");
    }
    return LinkSystem::run(sample);
  }
  std::unique_ptr<Link> open(const Place& place) override {
    return std::make_unique<EventLink>(events_[place.rank].get(), events_[1 - place.rank].get(), place.sample.size);
  }

 private:
  UniqueFd events_[2];
};

}  // namespace

void add_wake_limits(Registry& registry) {
  registry.systems.push_back(std::make_unique<WakeByWord<WordLink>>(
      "cache-line", "a word each way on a cache line of its own, both spin", false));
  registry.systems.push_back(std::make_unique<WakeByWord<FutexLink>>("futex", "a futex each way, no spinning", true));
  registry.systems.push_back(std::make_unique<WakeByEvent>());
}

}  // namespace wherry::bench
