// SPDX-License-Identifier: Apache-2.0
//
// What the harness makes of a system that is driven through links, right or wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "bench/harness/check.hpp"
#include "bench/systems/sockets/descriptor_links.hpp"

namespace wherry::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Socket pairs that both processes inherit, and a fault.
class Faulty : public LinkSystem {
 public:
  using Make = std::function<std::unique_ptr<Link>(const Place&, UniqueFd, UniqueFd)>;
  explicit Faulty(Make make) : make_(std::move(make)) {}

  [[nodiscard]] std::string name() const override { return "faulty"; }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
  Outcome run(const Sample& sample) override {
    for (auto& pair : ends_) {
      int ends[2];
      check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
      pair[0].reset(ends[0]);
      pair[1].reset(ends[1]);
    }
    return LinkSystem::run(sample);
  }
  std::unique_ptr<Link> open(const Place& place) override {
    return make_(place, std::move(ends_[place.rank][0]), std::move(ends_[1 - place.rank][1]));
  }

 private:
  Make make_;
  UniqueFd ends_[2][2];
};

std::unique_ptr<Link> sound(const Place& place, UniqueFd in, UniqueFd out) {
  return std::make_unique<DescriptorLink>(std::move(in), std::move(out), place.sample.size);
}

Sample touched() { return {.size = 1000, .messages = 200, .touched = true, .cores = {}, .timeout_seconds = 60}; }

TEST(Link, ASoundSystemIsTimedAndItsSumsAgree) {
  const Outcome outcome = Faulty(sound).run(touched());
  EXPECT_GT(outcome.seconds, 0);
  EXPECT_GT(outcome.cpu_seconds, 0);
  EXPECT_TRUE(outcome.latencies_ns.empty());
}

TEST(Link, LatenciesAreOneForEachRoundTripAndSorted) {
  Sample sample = touched();
  sample.question = Question::latency;
  const Outcome outcome = Faulty(sound).run(sample);
  EXPECT_EQ(outcome.latencies_ns.size(), sample.messages);
  EXPECT_TRUE(std::is_sorted(outcome.latencies_ns.begin(), outcome.latencies_ns.end()));
}

TEST(Link, FromSleepThePausesDoNotCount) {
  Sample sample = touched();
  sample.question = Question::asleep;
  sample.messages = 50;
  const std::vector<double> latencies = Faulty(sound).run(sample).latencies_ns;
  ASSERT_EQ(latencies.size(), sample.messages);
  EXPECT_GT(latencies.front(), 0);
  // Each pause takes a millisecond: the fastest of the messages took less.
  EXPECT_LT(latencies.front(), 1e6);
}

/// With two processes beside those that take part.
class Watched final : public Faulty {
 public:
  explicit Watched(std::function<void(const Place&)> stand_by) : Faulty(sound), stand_by_(std::move(stand_by)) {}

  [[nodiscard]] std::uint32_t bystanders() const override { return 2; }
  std::unique_ptr<Link> open(const Place& place) override {
    place.exchange.post(place.rank, "here");
    return Faulty::open(place);
  }
  void stand_by(const Place& place) override { stand_by_(place); }

 private:
  std::function<void(const Place&)> stand_by_;
};

TEST(Link, BystandersHaveTheNextRanksAndSeeWhatTheOthersPost) {
  const auto look = [](const Place& place) {
    if (place.rank != 2 && place.rank != 3) throw std::runtime_error("no rank of a bystander");
    if (place.exchange.read(0) != "here" || place.exchange.read(1) != "here")
      throw std::runtime_error("nobody is here");
  };
  EXPECT_GT(Watched(look).run(touched()).seconds, 0);
}

TEST(Link, WhyABystanderFailedIsTold) {
  const auto fail = [](const Place& place) {
    if (place.rank == 3) throw std::runtime_error("the door is closed");
  };
  EXPECT_THAT([&] { Watched(fail).run(touched()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("bystander 3: the door is closed")));
}

/// Counts what each rank sends and receives, in memory that the processes share, and has a lap.
class Counting final : public Link {
 public:
  struct Counts {
    std::uint64_t sent[2];
    std::uint64_t received[2];
  };
  static Counts* shared() {
    void* memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) Counts{};
  }

  Counting(std::unique_ptr<Link> link, Counts& counts, std::uint32_t rank, std::uint64_t lap,
           std::uint64_t learns_within)
      : link_(std::move(link)), counts_(counts), rank_(rank), lap_(lap), learns_within_(learns_within) {}
  std::span<std::byte> prepare() override { return link_->prepare(); }
  void send() override {
    ++counts_.sent[rank_];
    link_->send();
  }
  std::span<const std::byte> receive() override {
    ++counts_.received[rank_];
    return link_->receive();
  }
  [[nodiscard]] std::uint64_t lap() const override { return lap_; }
  [[nodiscard]] std::uint64_t learns_within() const override { return learns_within_; }

 private:
  std::unique_ptr<Link> link_;
  Counts& counts_;
  std::uint32_t rank_;
  std::uint64_t lap_;
  std::uint64_t learns_within_;
};

/// Of a sample in which only the sender knows its lap, and how long it learns.
Outcome counted(const Sample& sample, Counting::Counts& counts, std::uint64_t lap, std::uint64_t learns_within = 0) {
  Faulty system([&](const Place& place, UniqueFd in, UniqueFd out) {
    return std::make_unique<Counting>(sound(place, std::move(in), std::move(out)), counts, place.rank,
                                      place.receives() ? 0 : lap, place.receives() ? 0 : learns_within);
  });
  return system.run(sample);
}

TEST(Link, BeforeTheClockStartsTheMessagesGoRoundTheWholeRing) {
  const Sample sample = touched();
  Counting::Counts* counts = Counting::shared();
  const std::uint64_t lap = warm_up_messages(sample) + 1000;
  const Outcome outcome = counted(sample, *counts, lap);
  EXPECT_EQ(counts->sent[1], lap + sample.messages);
  EXPECT_EQ(counts->received[0], lap + sample.messages);
  EXPECT_EQ(outcome.lap, lap);
  EXPECT_GT(outcome.first_lap_seconds, 0);
  ::munmap(counts, sizeof *counts);
}

TEST(Link, BeforeTheClockStartsALinkHasLearnedHowToSend) {
  Counting::Counts* counts = Counting::shared();
  const std::uint64_t learns = warm_up_messages(touched()) + 500;
  EXPECT_EQ(counted(touched(), *counts, 3, learns).lap, 3U);
  EXPECT_EQ(counts->sent[1], learns + touched().messages);
  EXPECT_EQ(counts->received[0], learns + touched().messages);
  ::munmap(counts, sizeof *counts);
}

TEST(Link, AShortLapIsPartOfTheWarmUp) {
  Counting::Counts* counts = Counting::shared();
  counted(touched(), *counts, 3);
  EXPECT_EQ(counts->sent[1], warm_up_messages(touched()) + touched().messages);
  ::munmap(counts, sizeof *counts);
}

TEST(Link, ForLatencyTheMessagesGoRoundTheRingsOfBothDirections) {
  for (const Question question : {Question::latency, Question::asleep}) {
    Sample sample = touched();
    sample.question = question;
    sample.messages = 10;
    Counting::Counts* counts = Counting::shared();
    const std::uint64_t all = 5000 + warm_up_messages(sample) + sample.messages;
    EXPECT_EQ(counted(sample, *counts, 5000).latencies_ns.size(), sample.messages);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(counts->sent[rank], all);
      EXPECT_EQ(counts->received[rank], all);
    }
    ::munmap(counts, sizeof *counts);
  }
}

/// Changes one byte of one message on its way.
class Corrupting final : public Link {
 public:
  static constexpr std::uint64_t kChanged = 5000;

  explicit Corrupting(std::unique_ptr<Link> link) : link_(std::move(link)) {}
  std::span<std::byte> prepare() override { return buffer_ = link_->prepare(); }
  void send() override {
    if (++sent_ == kChanged) buffer_[77] ^= std::byte{1};
    link_->send();
  }
  std::span<const std::byte> receive() override { return link_->receive(); }

 private:
  std::unique_ptr<Link> link_;
  std::span<std::byte> buffer_;
  std::uint64_t sent_ = 0;
};

TEST(Link, AByteThatChangedOnItsWayIsNoticed) {
  Faulty system([](const Place& place, UniqueFd in, UniqueFd out) {
    return std::make_unique<Corrupting>(sound(place, std::move(in), std::move(out)));
  });
  Sample sample = touched();
  sample.messages = 2 * Corrupting::kChanged;
  ASSERT_LT(warm_up_messages(sample), Corrupting::kChanged);  // The warm-up is not checked.
  EXPECT_THAT([&] { system.run(sample); }, ThrowsMessage<std::runtime_error>(HasSubstr("not what was sent")));
}

TEST(Link, AMessageOfAnotherSizeIsNoticedOnEitherSide) {
  for (const std::uint32_t rank : {0U, 1U}) {
    Faulty system([rank](const Place& place, UniqueFd in, UniqueFd out) {
      const std::size_t size = place.sample.size - (place.rank == rank ? 1 : 0);
      return std::make_unique<DescriptorLink>(std::move(in), std::move(out), size);
    });
    const char* what = rank == 0 ? "received a message of another size" : "prepared a message of another size";
    EXPECT_THAT([&] { system.run(touched()); }, ThrowsMessage<std::runtime_error>(HasSubstr(what)));
  }
}

TEST(Link, WhatOneProcessThrowsIsTheReasonOfTheSample) {
  Faulty system([](const Place& place, UniqueFd in, UniqueFd out) -> std::unique_ptr<Link> {
    if (!place.receives()) throw std::runtime_error("no such library");
    return sound(place, std::move(in), std::move(out));
  });
  EXPECT_THAT([&] { system.run(touched()); }, ThrowsMessage<std::runtime_error>("sender 1: no such library"));
}

TEST(Link, AProcessThatEndsWithoutAWordIsTheReasonOfTheSample) {
  Faulty system([](const Place& place, UniqueFd in, UniqueFd out) -> std::unique_ptr<Link> {
    if (place.receives()) std::_Exit(9);
    return sound(place, std::move(in), std::move(out));
  });
  EXPECT_THAT([&] { system.run(touched()); }, ThrowsMessage<std::runtime_error>("receiver: exit status 9"));
}

TEST(Link, ASampleThatHangsIsGivenUp) {
  Faulty system([](const Place& place, UniqueFd in, UniqueFd out) -> std::unique_ptr<Link> {
    if (place.receives()) place.exchange.read(1);  // Never posted.
    return sound(place, std::move(in), std::move(out));
  });
  Sample sample = touched();
  sample.timeout_seconds = 0.05;
  EXPECT_THAT([&] { system.run(sample); }, ThrowsMessage<std::runtime_error>(HasSubstr("not done")));
}

}  // namespace
}  // namespace wherry::bench
