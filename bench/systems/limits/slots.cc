// SPDX-License-Identifier: Apache-2.0
//
// Slots in shared memory that the sender writes its messages in. Read there: no copy at all. Or copied out by the
// receiver: one copy.
#include <algorithm>
#include <cstring>
#include <optional>

#include "arch/cache_line.hpp"
#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

/// Messages since the beginning.
struct Counts {
  Counter sent;
  Counter freed;
};

class SlotLink final : public Link {
 public:
  /// With `out`, the receiver copies each message to a private buffer.
  SlotLink(Counts& counts, std::span<std::byte> slots, std::size_t slot_count, std::size_t size, bool out)
      : counts_(counts), slots_(slots), slot_count_(slot_count), size_(size) {
    if (out) out_.emplace(size);
  }

  std::span<std::byte> prepare() override {
    if (at_ - opposite_ >= slot_count_) {
      spin_until([&] { return at_ - (opposite_ = counts_.freed.value.load(std::memory_order_acquire)) < slot_count_; });
    }
    return slot(at_);
  }
  void send() override { counts_.sent.value.store(++at_, std::memory_order_release); }

  [[nodiscard]] std::uint64_t lap() const override { return slot_count_; }

  std::span<const std::byte> receive() override {
    // What the last call returned is valid until now.
    if (at_ != 0 && !out_) counts_.freed.value.store(at_, std::memory_order_release);
    if (at_ == opposite_) {
      spin_until([&] { return (opposite_ = counts_.sent.value.load(std::memory_order_acquire)) != at_; });
    }
    const std::span<std::byte> message = slot(at_++);
    if (!out_) return message;
    std::memcpy(out_->span().data(), message.data(), size_);
    counts_.freed.value.store(at_, std::memory_order_release);
    return out_->span();
  }

 private:
  [[nodiscard]] std::span<std::byte> slot(std::uint64_t number) const {
    return slots_.subspan(number % slot_count_ * (slots_.size() / slot_count_), size_);
  }

  Counts& counts_;
  std::span<std::byte> slots_;
  std::size_t slot_count_;
  std::size_t size_;
  std::optional<MessageBuffer> out_;
  std::uint64_t at_ = 0;
  std::uint64_t opposite_ = 0;
};

class Slots final : public Limit<Counts> {
 public:
  Slots(std::string name, std::string settings, std::size_t count, bool out)
      : Limit(std::move(name), std::move(settings)), count_(count), out_(out) {}

  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1;
  }
  [[nodiscard]] bool in_place() const override { return !out_; }
  std::unique_ptr<Link> open(const Place& place) override {
    return std::make_unique<SlotLink>(control(), memory(), count_, place.sample.size, out_);
  }

 protected:
  [[nodiscard]] std::size_t memory_bytes(const Sample& sample) const override {
    const std::size_t line = arch::kCacheLine;
    return count_ * ((sample.size + line - 1) / line * line);
  }

 private:
  std::size_t count_;
  bool out_;
};

}  // namespace

void add_slot_limits(Registry& registry) {
  registry.systems.push_back(
      std::make_unique<Slots>("one-copy", "2 shared slots, memcpy out by the receiver, both spin", 2, true));
  registry.systems.push_back(
      std::make_unique<Slots>("in-place", "4 shared slots, written and read in place, both spin", 4, false));
}

}  // namespace wherry::bench
