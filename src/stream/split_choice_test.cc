// SPDX-License-Identifier: Apache-2.0
#include "stream/split_choice.hpp"

#include <gtest/gtest.h>

#include <array>

namespace wherry::stream {
namespace {

using Way = SplitChoice::Way;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

/// Messages that take what each way costs on some machine.
class Machine {
 public:
  Machine(double split, double ring) : cost_{split, ring} {}

  /// Sends one as the choice wants, or over the ring where the receiver does not split. Returns the way wanted.
  Way send(std::size_t bytes) {
    const Way wanted = choice_.way(bytes);
    const Way went = splits_ ? wanted : Way::ring;
    const std::int64_t began = now_;
    now_ += static_cast<std::int64_t>(cost_[static_cast<std::size_t>(went)] * static_cast<double>(bytes));
    choice_.went(went, bytes, began, now_);
    now_ += pause_;
    return wanted;
  }
  /// The share of those many bytes that was wanted to go this way.
  double share(Way way, std::size_t bytes, std::uint64_t total) {
    std::uint64_t there = 0;
    for (std::uint64_t sent = 0; sent < total; sent += bytes) there += send(bytes) == way ? bytes : 0;
    return static_cast<double>(there) / static_cast<double>(total);
  }
  void become(double split, double ring) { cost_ = {split, ring}; }
  void never_split() { splits_ = false; }
  void pause_between(std::int64_t ns) { pause_ = ns; }

 private:
  SplitChoice choice_;
  std::array<double, 2> cost_;
  bool splits_ = true;
  std::int64_t now_ = 1'000'000, pause_ = 0;
};

constexpr std::uint64_t kMuch = std::uint64_t{64} << 30;

TEST(SplitChoice, TheFasterWayIsFoundWithinAFewMessages) {
  for (const std::size_t bytes : {256 * kKiB, kMiB, 3 * kMiB, 16 * kMiB}) {
    Machine ring_wins(0.05, 0.03), split_wins(0.03, 0.05);
    const std::uint64_t learning = 8 * std::max(8 * kMiB, 2 * bytes);
    ring_wins.share(Way::ring, bytes, learning);
    split_wins.share(Way::ring, bytes, learning);
    EXPECT_EQ(ring_wins.send(bytes), Way::ring) << bytes;
    EXPECT_EQ(split_wins.send(bytes), Way::split) << bytes;
  }
}

TEST(SplitChoice, OneHugeMessageOfEachWayIsEnough) {
  Machine machine(0.2, 0.1);
  EXPECT_EQ(machine.send(128 * kMiB), Way::split);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(machine.send(128 * kMiB), Way::ring) << i;
}

TEST(SplitChoice, AtMostOneByteInAHundredGoesTheSlowerWay) {
  for (const std::size_t bytes : {256 * kKiB, kMiB, 16 * kMiB, 128 * kMiB}) {
    Machine ring_wins(0.05, 0.03), split_wins(0.03, 0.05);
    ring_wins.share(Way::ring, bytes, 64 * bytes + 128 * kMiB);
    split_wins.share(Way::ring, bytes, 64 * bytes + 128 * kMiB);
    EXPECT_LT(ring_wins.share(Way::split, bytes, kMuch), 0.01) << bytes;
    EXPECT_LT(split_wins.share(Way::ring, bytes, kMuch), 0.01) << bytes;
  }
}

TEST(SplitChoice, FollowsAMachineThatChanges) {
  Machine machine(0.05, 0.03);
  machine.share(Way::ring, kMiB, kMuch);
  machine.become(0.02, 0.03);
  machine.share(Way::ring, kMiB, kMuch);
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

TEST(SplitChoice, LittleDifferenceChangesNothing) {
  Machine machine(0.031, 0.03);
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

TEST(SplitChoice, WhereTheReceiverDoesNotSplitTheSenderDoesNotMind) {
  Machine machine(0.03, 0.05);
  machine.never_split();
  machine.share(Way::split, kMiB, kMuch);
  EXPECT_EQ(machine.send(kMiB), Way::split) << "there is nothing to compare with";
}

TEST(SplitChoice, SizesAreToldApart) {
  Machine machine(0.05, 0.03);
  machine.share(Way::ring, 16 * kMiB, kMuch);
  machine.become(0.03, 0.05);
  machine.share(Way::ring, kMiB, 128 * kMiB);
  EXPECT_EQ(machine.send(16 * kMiB), Way::ring);
  EXPECT_EQ(machine.send(kMiB), Way::split);
}

TEST(SplitChoice, AProgramThatSeldomSendsIsNotTakenForASlowWay) {
  Machine machine(0.03, 0.05);
  machine.pause_between(1'000'000'000);
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

}  // namespace
}  // namespace wherry::stream
