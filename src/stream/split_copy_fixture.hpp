// SPDX-License-Identifier: Apache-2.0
// Both ends of a split copy over one page, with a fabric that lets a test act between any two of their steps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "base/scoped_environment.hpp"
#include "stream/split_copy.hpp"

namespace wherry::stream {
using layout::SplitDeal;
using layout::SplitEnding;

/// Both ends in one thread: the page is the receiver's segment and what the sender maps; private memory is this
/// process's. A call that would sleep finds its peer gone.
class OnePage final : public fabric::Connection, private fabric::PrivateMemory {
 public:
  OnePage() { start_notifications(bells, bells, /*unfenced=*/false); }
  std::span<std::byte> segment() const override { return memory; }
  std::byte* map() const override { return segment().data(); }
  std::size_t remote_bytes() const override { return memory.size(); }
  std::size_t put(std::uint64_t, std::span<const std::byte>) override { return 0; }
  bool get(std::span<std::byte>, std::uint64_t) override { return false; }
  fabric::PrivateMemory* private_memory() override { return this; }
  bool reachable() override {
    if (before_accepting) before_accepting();
    return true;
  }
  bool recognise() override { return recognised && still_recognised; }
  std::size_t read(std::span<std::byte> destination, std::uint64_t address) override {
    if (before_read) before_read();
    if (!recognised) return 0;
    std::memcpy(destination.data(), std::bit_cast<const void*>(address), destination.size());
    return destination.size();
  }
  std::size_t write(std::uint64_t address, std::span<const std::byte> source) override {
    ++writes;
    std::memcpy(std::bit_cast<void*>(address), source.data(), source.size());
    return source.size();
  }
  bool signal(std::uint64_t, std::uint64_t, fabric::Bell) override { return false; }
  Result flush(fabric::Deadline) override { return Result::moved(0); }
  void arm(fabric::Bell) override {}
  void disarm(fabric::Bell) override {}
  bool silence(fabric::Bell) override { return false; }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override {
    if (!instead_of_sleeping) return fabric::Wake::gone;
    instead_of_sleeping();
    return fabric::Wake::rung;
  }
  int descriptor(fabric::Bell) override { return -1; }
  void notify_self(fabric::Bell) override {}
  bool peer_gone() override { return false; }
  const Peer& peer() const override { return peer_; }
  const fabric::Greeting& peer_greeting() const override { return greeting_; }

  alignas(64) mutable std::array<std::byte, 2 * layout::kStreamPageBytes> memory{};  // the page, and a ring
  layout::StreamPage& page = *new (memory.data()) layout::StreamPage{};
  layout::BellPage bells{};
  layout::Word& waiter = bells.waiters[1].epoch;  // of the sender, which waits for space
  std::function<void()> when_rung;
  std::function<void()> before_accepting;
  std::function<void()> instead_of_sleeping;
  std::function<void()> before_read;
  bool recognised = true;
  bool still_recognised = true;  ///< after the read
  int writes = 0;

 protected:
  bool notify(fabric::Bell) override {
    if (when_rung) when_rung();
    return true;
  }

 private:
  Peer peer_;
  fabric::Greeting greeting_{};
};

class SplitCopyTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1'000'000;

  [[nodiscard]] layout::SplitWords& words() { return connection_.page.split; }
  /// Stores what an honest sender stores to accept, all at once.
  void accept(std::uint64_t bytes) {
    words().offered_address = reinterpret_cast<std::uint64_t>(from_.data());
    words().offered_bytes = bytes;
    words().deal += static_cast<std::uint64_t>(SplitDeal::accepted) - static_cast<std::uint64_t>(SplitDeal::open);
  }
  /// Stores what an honest sender stores to offer the bytes that follow the ring's byte `position`.
  void offer(std::uint64_t position, std::uint64_t bytes) {
    words().offered_position = position;
    words().offered_address = reinterpret_cast<std::uint64_t>(from_.data());
    words().offered_bytes = bytes;
    words().deal = words().deal / 4 * 4 + 4 + static_cast<std::uint64_t>(SplitDeal::offered);
  }
  [[nodiscard]] SplitDeal state() { return static_cast<SplitDeal>(words().deal % 4); }
  [[nodiscard]] SplitEnding receivers_ending() { return static_cast<SplitEnding>(words().receiver_finished % 4); }
  void expect_received(std::size_t bytes) { EXPECT_EQ(std::count(to_.begin(), to_.end(), std::byte{7}), bytes); }

  ScopedEnvironment threshold_{"WHERRY_SPLIT", "64K"};
  ScopedEnvironment spin_{"WHERRY_SPIN", "0"};
  OnePage connection_;
  ConnectionState senders_;
  ConnectionState receivers_;
  SplitSender sender_{connection_, senders_};
  SplitReceiver receiver_{connection_, receivers_};
  std::vector<std::byte> from_ = std::vector<std::byte>(kBytes, std::byte{7});
  std::vector<std::byte> to_ = std::vector<std::byte>(kBytes);
};

}  // namespace wherry::stream
