// SPDX-License-Identifier: Apache-2.0
//
// What copying allows, with no other process: memcpy by one core, and by two cores at once, each one half of every
// message between private buffers of its own.
#include <algorithm>
#include <cstring>

#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

struct Progress {
  Counter sender;
  Counter receiver;
};

/// Copies its part of each message, never far from the other, so that both always copy at once.
class MemcpyLink final : public Link {
 public:
  MemcpyLink(const Sample& sample, std::size_t part, Counter& mine, const Counter& other)
      : from_(sample.size),
        to_(sample.size),
        part_(part),
        warm_(warm_up_messages(sample, false)),
        last_(warm_ + sample.messages),
        mine_(mine),
        other_(other) {}

  std::span<std::byte> prepare() override { return from_.span(); }
  void send() override { copy(); }
  std::span<const std::byte> receive() override {
    copy();
    return to_.span();
  }

 private:
  static constexpr std::uint64_t kSlack = 8;

  void copy() {
    std::memcpy(to_.span().data(), from_.span().data(), part_);
    mine_.value.store(++done_, std::memory_order_release);
    // The clock starts and stops for both together.
    const bool together = done_ == warm_ || done_ == last_;
    const std::uint64_t enough = together ? done_ : done_ - std::min(done_, kSlack);
    spin_until([&] { return other_.value.load(std::memory_order_acquire) >= enough; });
  }

  MessageBuffer from_;
  MessageBuffer to_;
  std::size_t part_;
  std::uint64_t warm_;
  std::uint64_t last_;
  Counter& mine_;
  const Counter& other_;
  std::uint64_t done_ = 0;
};

class Memcpy final : public Limit<Progress> {
 public:
  Memcpy(std::string name, std::string settings, bool two) : Limit(std::move(name), std::move(settings)), two_(two) {}

  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1 && !sample.touched;
  }

  std::unique_ptr<Link> open(const Place& place) override {
    const std::size_t size = place.sample.size;
    const std::size_t mine = two_ ? (place.receives() ? size / 2 : size - size / 2) : place.receives() ? size : 0;
    Progress& progress = control();
    Counter& own = place.receives() ? progress.receiver : progress.sender;
    Counter& other = place.receives() ? progress.sender : progress.receiver;
    // Alone, the receiver looks only at itself, and the sender is done at once.
    return std::make_unique<MemcpyLink>(place.sample, mine, own, two_ ? other : own);
  }

 private:
  bool two_;
};

}  // namespace

void add_memcpy_limits(Registry& registry) {
  registry.systems.push_back(std::make_unique<Memcpy>("memcpy-1", "memcpy between private buffers by one core", false));
  registry.systems.push_back(std::make_unique<Memcpy>(
      "memcpy-2", "memcpy between private buffers by two cores at once, half of each message each", true));
}

}  // namespace wherry::bench
