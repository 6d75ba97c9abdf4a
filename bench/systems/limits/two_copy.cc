// SPDX-License-Identifier: Apache-2.0
//
// Two copies in a pipeline: the sender copies into a shared ring, the receiver out of it, both at once.
#include <algorithm>
#include <cstring>

#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kRing = 1 << 20;
constexpr std::size_t kPiece = 64 << 10;

/// Bytes since the beginning.
struct Ends {
  Counter written;
  Counter read;
};

class RingLink final : public Link {
 public:
  RingLink(Ends& ends, std::span<std::byte> ring, std::size_t size) : ends_(ends), ring_(ring), out_(size), in_(size) {}

  std::span<std::byte> prepare() override { return out_.span(); }

  void send() override {
    const std::span<const std::byte> message = out_.span();
    for (std::size_t done = 0; done < message.size();) {
      const std::size_t piece = piece_of(message.size() - done);
      if (at_ + piece > opposite_ + kRing) {
        spin_until(
            [&] { return (opposite_ = ends_.read.value.load(std::memory_order_acquire)) + kRing >= at_ + piece; });
      }
      std::memcpy(ring_.data() + at_ % kRing, message.data() + done, piece);
      done += piece;
      at_ += piece;
      ends_.written.value.store(at_, std::memory_order_release);
    }
  }

  [[nodiscard]] std::uint64_t lap() const override { return (kRing + out_.size() - 1) / out_.size(); }

  std::span<const std::byte> receive() override {
    const std::span<std::byte> message = in_.span();
    for (std::size_t done = 0; done < message.size();) {
      if (at_ == opposite_) {
        give_back();
        spin_until([&] { return (opposite_ = ends_.written.value.load(std::memory_order_acquire)) != at_; });
      }
      const std::size_t piece = std::min(piece_of(message.size() - done), static_cast<std::size_t>(opposite_ - at_));
      std::memcpy(message.data() + done, ring_.data() + at_ % kRing, piece);
      done += piece;
      at_ += piece;
      if (at_ - given_back_ >= kRing / 8) give_back();
    }
    return message;
  }

 private:
  [[nodiscard]] std::size_t piece_of(std::size_t rest) const { return std::min({rest, kPiece, kRing - at_ % kRing}); }

  void give_back() {
    ends_.read.value.store(at_, std::memory_order_release);
    given_back_ = at_;
  }

  Ends& ends_;
  std::span<std::byte> ring_;
  MessageBuffer out_;
  MessageBuffer in_;
  std::uint64_t at_ = 0;        // How far this side is.
  std::uint64_t opposite_ = 0;  // How far the other was when last looked at.
  std::uint64_t given_back_ = 0;
};

class TwoCopy final : public Limit<Ends> {
 public:
  TwoCopy() : Limit("two-copy", "ring of 1 MiB in pieces of 64 KiB, memcpy in and out, both spin") {}

  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    return std::make_unique<RingLink>(control(), memory(), place.sample.size);
  }

 protected:
  [[nodiscard]] std::size_t memory_bytes(const Sample& /*sample*/) const override { return kRing; }
};

}  // namespace

void add_two_copy_limit(Registry& registry) { registry.systems.push_back(std::make_unique<TwoCopy>()); }

}  // namespace wherry::bench
