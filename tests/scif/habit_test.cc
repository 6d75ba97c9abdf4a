// SPDX-License-Identifier: Apache-2.0
// A program that always receives what scif_poll reported gets its messages without packets, so without system calls;
// and poll(2) on the bare descriptor is right all the same as soon as the program does anything else.
#include <atomic>
#include <thread>

#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

constexpr int kHabit = 16;
constexpr long kForEver = -1;

/// The connector answers each byte at once with as many bytes as it says.
class ScifHabit : public Scif {
 protected:
  ScifHabit() {
    // On one CPU the peer cannot answer while this side looks.
    if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
    answering_ = std::thread([this] {
      char bytes = 0;
      while (scif_recv(pair_.connector, &bytes, 1, SCIF_RECV_BLOCK) == 1) {
        send_text(pair_.connector, std::string(static_cast<unsigned char>(bytes), 'a'));
        ++answers_;
      }
    });
  }
  ~ScifHabit() override {
    pair_.acceptor.close();
    if (answering_.joinable()) answering_.join();
  }
  void SetUp() override {
    if (!answering_.joinable()) GTEST_SKIP() << "one CPU";
  }

  /// Until the peer has come back from its call.
  void ask(char bytes) {
    const int before = answers_;
    ASSERT_EQ(scif_send(pair_.acceptor, &bytes, 1, SCIF_SEND_BLOCK), 1);
    asked_ = before + 1;
  }
  void await_answer() const {
    while (answers_ != asked_) std::this_thread::yield();
  }
  void receive(char bytes) {
    const std::size_t size = static_cast<unsigned char>(bytes);
    ASSERT_EQ(receive_text(epd(), size), std::string(size, 'a'));
  }
  /// One round as the habit is. Whether the answer came without a packet.
  bool ask_and_poll(char bytes) {
    ask(bytes);
    EXPECT_EQ(events(epd(), SCIF_POLLIN, kForEver), SCIF_POLLIN);
    await_answer();
    return kernel_events(epd(), POLLIN) == 0;
  }

  /// Keeps the habit until an answer came without a packet, and leaves that unread.
  void meet_an_answer_without_packet(char bytes) {
    while (!ask_and_poll(bytes)) receive(bytes);
  }

  /// What every call must leave behind if nothing is there: the next byte shows.
  void expect_the_truth() {
    EXPECT_EQ(kernel_events(epd(), POLLIN), 0);
    ask(1);
    EXPECT_EQ(kernel_events(epd(), POLLIN, -1), POLLIN);
    receive(1);
    await_answer();
    EXPECT_EQ(kernel_events(epd(), POLLIN), 0);
  }

  scif_epd_t epd() const { return pair_.acceptor; }

  Pair pair_;
  std::atomic<int> answers_{0};
  int asked_ = 0;
  std::thread answering_;
};

TEST_F(ScifHabit, AnAnswerToWhoAlwaysReceivesWhatPollReportedNeedsNoPacket) {
  meet_an_answer_without_packet(1);
  receive(1);
  expect_the_truth();
}

TEST_F(ScifHabit, OfTheParentIsKeptWhenAChildHasDescriptorsOfItsOwn) {
  Child child([this] {
    const int own = ::fcntl(pair_.connector, F_DUPFD, 900);
    return events(own, SCIF_POLLOUT) == SCIF_POLLOUT && scif_close(pair_.connector) == 0;
  });
  EXPECT_EQ(child.wait(), 0);
  meet_an_answer_without_packet(1);
  receive(1);
  expect_the_truth();
}

TEST_F(ScifHabit, FewerThanSixteenInARowAlwaysGetPackets) {
  for (int i = 0; i < 2000; ++i) {
    EXPECT_FALSE(ask_and_poll(1));
    receive(1);
    if (i % (kHabit - 1) != kHabit - 2) continue;
    ask(1);
    receive(1);  // without scif_poll
    await_answer();
  }
}

TEST_F(ScifHabit, APartialReceiveIsNoHabit) {
  for (int i = 0; i < 500; ++i) {
    EXPECT_FALSE(ask_and_poll(2));
    EXPECT_EQ(receive_text(epd(), 1), "a");
    EXPECT_EQ(receive_text(epd(), 1), "a");
  }
}

TEST_F(ScifHabit, ASecondPollShowsTheBytesToABarePoll) {
  meet_an_answer_without_packet(1);
  EXPECT_EQ(events(epd(), SCIF_POLLIN), SCIF_POLLIN);
  EXPECT_EQ(kernel_events(epd(), POLLIN), POLLIN);
  receive(1);
  expect_the_truth();
}

TEST_F(ScifHabit, APartialReceiveShowsTheRestToABarePoll) {
  meet_an_answer_without_packet(2);
  EXPECT_EQ(receive_text(epd(), 1), "a");
  EXPECT_EQ(kernel_events(epd(), POLLIN), POLLIN);
  receive(1);
  expect_the_truth();
}

TEST_F(ScifHabit, APartialReceiveShowsTheRestAlsoIfThePeerGoesByAnotherDescriptor) {
  meet_an_answer_without_packet(2);
  const int first = pair_.connector;
  const Epd duplicate(::dup(first));
  EXPECT_EQ(::close(first), 0);
  EXPECT_EQ(events(duplicate, SCIF_POLLIN), 0) << "the library hears of it";
  EXPECT_EQ(receive_text(epd(), 1), "a");
  EXPECT_EQ(kernel_events(epd(), POLLIN), POLLIN);
  receive(1);
  EXPECT_EQ(::dup2(duplicate, first), first) << "for the end of the test";
}

TEST_F(ScifHabit, AWriteBehindTheReportedOneShows) {
  meet_an_answer_without_packet(1);
  ask(1);
  await_answer();
  EXPECT_EQ(kernel_events(epd(), POLLIN), POLLIN);
  receive(1);
  EXPECT_EQ(kernel_events(epd(), POLLIN), POLLIN);
  receive(1);
  expect_the_truth();
}

TEST_F(ScifHabit, APollThatEndsInVainTakesTheExceptionBack) {
  meet_an_answer_without_packet(1);
  receive(1);
  EXPECT_EQ(events(epd(), SCIF_POLLIN, 1), 0);
  expect_the_truth();
}

TEST_F(ScifHabit, BytesForAnotherEndpointThatWasPolledTooShow) {
  const Pair other;
  const auto keep_the_habit = [&] {
    EXPECT_EQ(send_text(other.connector, "x"), 1);
    EXPECT_EQ(kernel_events(other.acceptor, POLLIN), POLLIN);
    EXPECT_EQ(events(other.acceptor, SCIF_POLLIN), SCIF_POLLIN);
    EXPECT_EQ(receive_text(other.acceptor, 1), "x");
  };
  for (int i = 0; i < kHabit; ++i) keep_the_habit();
  for (int i = 0; i < 200; ++i) {
    ask(1);
    scif_pollepd both[2] = {{epd(), SCIF_POLLIN, 0}, {other.acceptor, SCIF_POLLIN, 0}};
    ASSERT_EQ(scif_poll(both, 2, kForEver), 1);
    receive(1);
    await_answer();
    keep_the_habit();
  }
}

TEST_F(ScifHabit, SixtyEndpointsOfWhichOneIsBusyAreAsGood) {
  std::vector<Pair> idle(29);
  std::vector<scif_pollepd> polled{{epd(), SCIF_POLLIN, 0}};
  for (const Pair& pair : idle) {
    polled.push_back({pair.acceptor, SCIF_POLLIN, 0});
    polled.push_back({pair.connector, SCIF_POLLIN, 0});
  }
  const auto poll_all = [&] { return scif_poll(polled.data(), static_cast<unsigned>(polled.size()), kForEver); };
  bool met = false;
  while (!met) {
    ask(1);
    ASSERT_EQ(poll_all(), 1);
    ASSERT_EQ(polled[0].revents, SCIF_POLLIN);
    await_answer();
    met = kernel_events(epd(), POLLIN) == 0;
    receive(1);
  }
  EXPECT_EQ(send_text(idle[7].acceptor, "x"), 1);
  ASSERT_EQ(poll_all(), 1);
  EXPECT_EQ(kernel_events(idle[7].connector, POLLIN), POLLIN) << "it was idle";
  EXPECT_EQ(receive_text(idle[7].connector, 1), "x");
  expect_the_truth();
}

TEST_F(ScifHabit, AChildThatTakesTheEndpointOverLosesNothing) {
  meet_an_answer_without_packet(1);
  receive(1);
  Child child([this] {
    for (int i = 0; i < 100; ++i) {
      char one = 1;
      if (scif_send(epd(), &one, 1, SCIF_SEND_BLOCK) != 1) return false;
      if (events(epd(), SCIF_POLLIN, kForEver) != SCIF_POLLIN || kernel_events(epd(), POLLIN, -1) != POLLIN)
        return false;
      if (receive_text(epd(), 1) != "a") return false;
    }
    return true;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
