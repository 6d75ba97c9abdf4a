// SPDX-License-Identifier: Apache-2.0
// A connection whose peer writes what it likes into every shared word at any moment between two calls, and whose fabric
// wakes, times out and dies as the input says. Both segments are heap blocks of exactly their size, so that one byte
// outside is seen.
#pragma once

#include <cstdlib>
#include <cstring>

#include "ring/ring.hpp"
#include "stream/handshake.hpp"
#include "tests/fuzz/input.hpp"

namespace wherry::fuzz {

inline constexpr std::size_t kCapacity = ring::kMinCapacity;
inline constexpr std::size_t kSegment = layout::kStreamPageBytes + kCapacity;

struct AlignedBlock {
  AlignedBlock() : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, kSegment))) {
    std::memset(bytes, 0, kSegment);
  }
  AlignedBlock(const AlignedBlock&) = delete;
  AlignedBlock& operator=(const AlignedBlock&) = delete;
  ~AlignedBlock() { std::free(bytes); }
  std::byte* bytes;
};

/// The victim's view of a connection; the other side of it is the input.
class HostileConnection final : public fabric::Connection, private fabric::PrivateMemory {
 public:
  HostileConnection(Input& input, bool maps) : input_(input), maps_(maps) {
    const fabric::Offer offer = stream::offer_of({.own = kCapacity});
    greeting_ = offer.greeting;
    start_notifications(page_, peers_page_, /*unfenced=*/false);
  }

  std::span<std::byte> segment() const override { return {own_.bytes, kSegment}; }
  std::byte* map() const override { return maps_ ? remote_.bytes : nullptr; }
  std::size_t remote_bytes() const override { return kSegment; }

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override {
    if (input_.one_in(32)) return 0;
    const std::size_t n = input_.one_in(2) ? source.size() : 1 + input_.number<std::uint16_t>() % source.size();
    std::memcpy(remote_.bytes + offset, source.data(), n);
    return n;
  }
  bool get(std::span<std::byte>, std::uint64_t) override { return false; }
  fabric::PrivateMemory* private_memory() override { return this; }
  bool reachable() override { return maps_ && !input_.one_in(8); }
  bool recognise() override { return !input_.one_in(8); }
  /// What is read is the peer's, whatever address it gave; what is written never reaches this process.
  std::size_t read(std::span<std::byte> destination, std::uint64_t) override {
    scribble();
    const std::size_t n = allowed(destination.size());
    std::memset(destination.data(), 'r', n);
    return n;
  }
  std::size_t write(std::uint64_t, std::span<const std::byte> source) override {
    scribble();
    unsigned sum = 0;
    for (const std::byte b : source) sum += std::to_integer<unsigned>(b);
    return sum == 1u << 31 ? 0 : allowed(source.size());
  }
  bool signal(std::uint64_t offset, std::uint64_t value, fabric::Bell) override {
    reinterpret_cast<layout::Word*>(remote_.bytes + offset)->store(value);
    scribble();
    return !input_.one_in(32);
  }
  Result flush(fabric::Deadline) override { return Result::moved(0); }

  void arm(fabric::Bell) override { scribble(); }
  void disarm(fabric::Bell) override { scribble(); }
  bool silence(fabric::Bell) override { return input_.one_in(2); }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override {
    scribble();
    if (input_.empty()) return fabric::Wake::gone;
    return static_cast<fabric::Wake>(input_.number<std::uint8_t>() % 3);
  }
  int descriptor(fabric::Bell) override { return 0; }
  void notify_self(fabric::Bell) override {}
  bool peer_gone() override { return input_.one_in(16); }
  const Peer& peer() const override { return peer_; }
  const fabric::Greeting& peer_greeting() const override { return greeting_; }

  /// The peer writes a word or a stretch of bytes somewhere in the victim's memory.
  void scribble() {
    // Its receiver's words lie in the victim's page, its invitations in its own, which the victim's sender reads.
    while (input_.one_in(2)) {
      auto& page = *reinterpret_cast<layout::StreamPage*>(own_.bytes);
      auto& peers = *reinterpret_cast<layout::StreamPage*>(remote_.bytes);
      layout::Word* const words[] = {&page.tail,
                                     &page.finished,
                                     &page.head,
                                     &page.closed,
                                     &page_.waiters[0].epoch,
                                     &page_.waiters[1].epoch,
                                     &page_.publishers[0].rung_ns,
                                     &page_.publishers[1].rung_on,
                                     &page.split.deal,
                                     &page.split.pieces_taken,
                                     &page.split.offered_position,
                                     &page.split.offered_address,
                                     &page.split.offered_bytes,
                                     &page.split.sender_finished,
                                     &peers.split.deal,
                                     &peers.split.pieces_taken,
                                     &peers.split.invited_position,
                                     &peers.split.invited_address,
                                     &peers.split.invited_bytes,
                                     &peers.split.receiver_finished};
      layout::Word& word = *words[input_.number<std::uint8_t>() % std::size(words)];
      switch (input_.number<std::uint8_t>() % 5) {
        case 3:
          play_along(page.split, peers.split);
          break;
        case 0:
          word = input_.number<std::uint64_t>();
          break;
        case 1:
          word += input_.number<std::uint16_t>() % (2 * kCapacity);
          break;
        case 2:
          word = input_.number<std::uint8_t>();
          break;
        default:
          std::memset(own_.bytes + layout::kStreamPageBytes, input_.number<std::uint8_t>(), kCapacity);
          break;
      }
    }
  }

 protected:
  bool notify(fabric::Bell) override { return true; }

 private:
  /// What an honest peer would do next: a random word seldom is the right one.
  void play_along(layout::SplitWords& own, layout::SplitWords& peers) {
    const std::uint64_t own_number = own.deal / 4 * 4;
    const std::uint64_t peers_number = peers.deal / 4 * 4;
    switch (input_.number<std::uint8_t>() % 6) {
      case 0:  // accepts an invitation
        own.offered_position = reinterpret_cast<layout::StreamPage*>(own_.bytes)->tail.load();
        own.offered_bytes = input_.number<std::uint16_t>();
        own.deal = own_number + static_cast<std::uint64_t>(layout::SplitDeal::accepted);
        break;
      case 1:  // invites
        peers.invited_position = reinterpret_cast<layout::StreamPage*>(remote_.bytes)->tail.load();
        peers.invited_bytes = input_.number<std::uint16_t>();
        peers.deal = peers_number + 4 + static_cast<std::uint64_t>(layout::SplitDeal::open);
        break;
      case 2:  // has sent its part
        own.sender_finished = own_number + input_.number<std::uint8_t>() % 3;
        break;
      case 3:  // has received its part
        peers.receiver_finished = peers_number + input_.number<std::uint8_t>() % 3;
        break;
      case 4:  // offers
        own.offered_position = reinterpret_cast<layout::StreamPage*>(own_.bytes)->tail.load();
        own.offered_bytes = input_.number<std::uint16_t>();
        own.deal = own_number + 4 + static_cast<std::uint64_t>(layout::SplitDeal::offered);
        break;
      default:  // takes up an offer
        peers.invited_bytes = input_.number<std::uint16_t>();
        peers.deal = peers_number + static_cast<std::uint64_t>(layout::SplitDeal::accepted);
        break;
    }
  }

  std::size_t allowed(std::size_t bytes) { return input_.one_in(8) ? bytes / 2 : bytes; }

  Input& input_;
  bool maps_;
  AlignedBlock own_;
  AlignedBlock remote_;
  layout::BellPage page_{};
  layout::BellPage peers_page_{};
  Peer peer_;
  fabric::Greeting greeting_{};
};

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void require_sane(const Result& result, std::size_t most) {
  require(result.bytes <= most);
  require(result.failed() == (result.error != 0));
  require(!result.would_block() || result.bytes == 0);
}

inline void read_all(const ConstRegions& bytes) {
  unsigned sum = 0;
  for (const std::byte b : bytes.first) sum += std::to_integer<unsigned>(b);
  for (const std::byte b : bytes.second) sum += std::to_integer<unsigned>(b);
  require(sum != 1u << 31);  // So that the reads are not optimised away.
}

}  // namespace wherry::fuzz
