// SPDX-License-Identifier: Apache-2.0
#include "stream/split_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace wherry::stream {
namespace {

using Way = SplitChoice::Way;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

/// In ns per byte.
struct Costs {
  double split, copy_in, copy_out;
};

/// Models both sides of a stream on a machine, and a ring that fills if the receiver is the slower one.
class Machine {
 public:
  explicit Machine(Costs costs, std::size_t ring = 2 * kMiB) : costs_(costs), ring_(ring), choice_(ring) {}

  /// Sends a message as the choice wants, or over the ring if the receiver does not split. Returns the wanted way.
  Way send(std::size_t bytes) {
    const Way wanted = choice_.way(bytes);
    const Way went = splits_ ? wanted : Way::ring;
    const double began = now_;
    went == Way::split ? split(bytes) : copy(bytes);
    choice_.record_transfer(went, bytes, static_cast<std::int64_t>(began), static_cast<std::int64_t>(now_));
    drain(pause_);
    return wanted;
  }
  /// Returns the fraction of those bytes that was wanted to go this way.
  double share(Way way, std::size_t bytes, std::uint64_t total) {
    std::uint64_t there = 0;
    for (std::uint64_t sent = 0; sent < total; sent += bytes) there += send(bytes) == way ? bytes : 0;
    return static_cast<double>(there) / static_cast<double>(total);
  }
  void become(Costs costs) { costs_ = costs; }
  void never_split() { splits_ = false; }
  void pause_between(double ns) { pause_ = ns; }

 private:
  void split(std::size_t bytes) {
    drain(fill_ * costs_.copy_out);
    now_ += costs_.split * static_cast<double>(bytes);
  }
  void copy(std::size_t bytes) {
    constexpr std::size_t kPiece = 64 * kKiB;
    for (std::size_t sent = 0; sent < bytes; sent += kPiece) {
      const double over = fill_ + kPiece - static_cast<double>(ring_);
      if (over > 0) drain(over * costs_.copy_out);
      drain(costs_.copy_in * kPiece);
      fill_ += kPiece;
    }
  }
  void drain(double ns) {
    now_ += ns;
    fill_ = std::max(0.0, fill_ - ns / costs_.copy_out);
  }

  Costs costs_;
  const std::size_t ring_;
  SplitChoice choice_;
  bool splits_ = true;
  double now_ = 1'000'000, pause_ = 0;
  double fill_ = 0;  ///< bytes in the ring
};

constexpr Costs kRingWins{.split = 0.05, .copy_in = 0.03, .copy_out = 0.02};
constexpr Costs kSplitWins{.split = 0.03, .copy_in = 0.04, .copy_out = 0.05};

constexpr std::uint64_t kMuch = std::uint64_t{64} << 30;

TEST(SplitChoice, TheFasterWayIsFoundWithinAFewMessages) {
  for (const std::size_t bytes : {256 * kKiB, kMiB, 3 * kMiB, 16 * kMiB}) {
    Machine ring_wins(kRingWins), split_wins(kSplitWins);
    const std::uint64_t learning = 8 * std::max(8 * kMiB, 2 * bytes);
    ring_wins.share(Way::ring, bytes, learning);
    split_wins.share(Way::ring, bytes, learning);
    EXPECT_EQ(ring_wins.send(bytes), Way::ring) << bytes;
    EXPECT_EQ(split_wins.send(bytes), Way::split) << bytes;
  }
}

TEST(SplitChoice, OneHugeMessageOfEachWayIsEnough) {
  Machine machine({.split = 0.2, .copy_in = 0.1, .copy_out = 0.1});
  EXPECT_EQ(machine.send(128 * kMiB), Way::split);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(machine.send(128 * kMiB), Way::ring) << i;
}

TEST(SplitChoice, AtMostOneByteInAHundredGoesTheSlowerWay) {
  for (const std::size_t bytes : {256 * kKiB, kMiB, 16 * kMiB, 128 * kMiB}) {
    Machine ring_wins(kRingWins), split_wins(kSplitWins);
    ring_wins.share(Way::ring, bytes, 64 * bytes + 128 * kMiB);
    split_wins.share(Way::ring, bytes, 64 * bytes + 128 * kMiB);
    EXPECT_LT(ring_wins.share(Way::split, bytes, kMuch), 0.01) << bytes;
    EXPECT_LT(split_wins.share(Way::ring, bytes, kMuch), 0.01) << bytes;
  }
}

TEST(SplitChoice, FollowsAMachineThatChanges) {
  Machine machine(kRingWins);
  machine.share(Way::ring, kMiB, kMuch);
  machine.become(kSplitWins);
  machine.share(Way::ring, kMiB, kMuch);
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

TEST(SplitChoice, LittleDifferenceChangesNothing) {
  Machine machine({.split = 0.031, .copy_in = 0.03, .copy_out = 0.03});
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

TEST(SplitChoice, WhereTheReceiverDoesNotSplitTheSenderDoesNotMind) {
  Machine machine(kSplitWins);
  machine.never_split();
  machine.share(Way::split, kMiB, kMuch);
  EXPECT_EQ(machine.send(kMiB), Way::split) << "there is nothing to compare with";
}

TEST(SplitChoice, ARingThatOnlyFillsIsNotTakenForAFastOne) {
  for (const std::size_t ring : {kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB}) {
    Machine machine({.split = 0.05, .copy_in = 0.03, .copy_out = 0.06}, ring);
    EXPECT_GT(machine.share(Way::split, kMiB, 2 * kMuch), 0.95) << ring;
  }
}

TEST(SplitChoice, SizesThatTakeTurnsAreBothLearned) {
  Machine machine(kRingWins);
  for (int i = 0; i < 2000; ++i) {
    machine.send(300 * kKiB);
    machine.send(4 * kMiB);
  }
  EXPECT_EQ(machine.send(300 * kKiB), Way::ring);
  EXPECT_EQ(machine.send(4 * kMiB), Way::ring);
}

TEST(SplitChoice, ATrialDoesNotOutlastTheMessagesThatItIsAbout) {
  Machine machine(kSplitWins);
  machine.share(Way::split, 300 * kKiB, kMuch);
  while (machine.send(300 * kKiB) != Way::ring) {
  }
  machine.share(Way::split, 16 * kMiB, kMuch);
  EXPECT_GT(machine.share(Way::split, 16 * kMiB, kMuch), 0.98);
}

TEST(SplitChoice, SizesAreToldApart) {
  Machine machine(kRingWins);
  machine.share(Way::ring, 16 * kMiB, kMuch);
  machine.become(kSplitWins);
  machine.share(Way::ring, kMiB, 128 * kMiB);
  EXPECT_EQ(machine.send(16 * kMiB), Way::ring);
  EXPECT_EQ(machine.send(kMiB), Way::split);
}

TEST(SplitChoice, AProgramThatSeldomSendsIsNotTakenForASlowWay) {
  Machine machine(kSplitWins);
  machine.pause_between(1e9);
  EXPECT_GT(machine.share(Way::split, kMiB, kMuch), 0.98);
}

}  // namespace
}  // namespace wherry::stream
