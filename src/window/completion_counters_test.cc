// SPDX-License-Identifier: Apache-2.0
#include "window/completion_counters.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"
#include "layout/window_page.hpp"

namespace wherry::window {
namespace {

using namespace std::chrono_literals;

class CompletionCountersTest : public ::testing::Test {
 protected:
  CompletionCountersTest() {
    const fabric::Offer offer{.segment_bytes = sizeof(layout::WindowPage)};
    const auto listener = fabric::find("inproc").listen(Address::parse("wherry+inproc://*:*"));
    const auto connecting = fabric::find("inproc").connect(listener->local(), offer);
    peers_end_ = listener->try_accept(offer);
    own_end_ = connecting->try_finish();
    peers_.emplace(*own_end_, 0);
    completions_.emplace(*peers_);
  }

  /// The words that the peer sees.
  [[nodiscard]] const layout::WindowPage& peers_page() const {
    return *reinterpret_cast<const layout::WindowPage*>(peers_end_->segment().data());
  }
  [[nodiscard]] bool complete(std::uint64_t calls) {
    return completions_->wait(calls, std::chrono::steady_clock::now());
  }

  std::unique_ptr<fabric::Connection> own_end_, peers_end_;
  std::optional<PeersPage> peers_;
  std::optional<CompletionCounters> completions_;
};

TEST_F(CompletionCountersTest, ACallIsToldToThePeerBeforeItGoesOn) {
  EXPECT_EQ(completions_->start(), 0U);
  EXPECT_EQ(peers_page().started, 1U);
  EXPECT_EQ(completions_->start(), 1U);
  EXPECT_EQ(peers_page().started, 2U);
  EXPECT_EQ(completions_->started(), 2U);
  EXPECT_EQ(peers_page().completed, 0U);
}

TEST_F(CompletionCountersTest, CallsEndInAnyOrderAndCountFromTheFirst) {
  for (int i = 0; i < 4; ++i) completions_->start();
  completions_->finish(2);
  completions_->finish(1);
  EXPECT_EQ(peers_page().completed, 0U);
  EXPECT_TRUE(complete(0));
  EXPECT_FALSE(complete(1));
  completions_->finish(0);
  EXPECT_EQ(peers_page().completed, 3U);
  EXPECT_TRUE(complete(3));
  EXPECT_FALSE(complete(4));
  completions_->finish(3);
  EXPECT_TRUE(complete(4));
}

TEST_F(CompletionCountersTest, AWaitEndsWithTheLastOfItsCalls) {
  for (int i = 0; i < 2; ++i) completions_->start();
  std::thread finisher([&] {
    completions_->finish(1);
    completions_->finish(0);
  });
  EXPECT_TRUE(completions_->wait(2, std::chrono::steady_clock::now() + 1h));
  EXPECT_EQ(peers_page().completed, 2U);
  finisher.join();
}

TEST_F(CompletionCountersTest, ACallThatFindsTooManyUnderWayWaitsForTheOldest) {
  for (std::size_t i = 0; i < CompletionCounters::kMostOpen; ++i) completions_->start();
  std::uint64_t call = 0;
  std::thread late([&] { call = completions_->start(); });
  for (std::size_t i = 1; i < CompletionCounters::kMostOpen; ++i) completions_->finish(i);
  EXPECT_EQ(completions_->started(), CompletionCounters::kMostOpen) << "the others do not count";
  completions_->finish(0);
  late.join();
  EXPECT_EQ(call, CompletionCounters::kMostOpen);
  EXPECT_EQ(peers_page().completed, CompletionCounters::kMostOpen);
}

TEST_F(CompletionCountersTest, ManyThreadsLoseNoCall) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kCalls = 10'000;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kCalls; ++n) completions_->finish(completions_->start());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(peers_page().started, kThreads * kCalls);
  EXPECT_EQ(peers_page().completed, kThreads * kCalls);
}

}  // namespace
}  // namespace wherry::window
