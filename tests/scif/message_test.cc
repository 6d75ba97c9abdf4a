// SPDX-License-Identifier: Apache-2.0
// scif_send and scif_recv.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/scif/common.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifMessage : public Scif {};

constexpr int kCapacity = 4095;

TEST_F(ScifMessage, TheQueueTakesExactly4095OneByteMessages) {
  const Pair pair;
  char byte = 'x';
  for (int i = 0; i < kCapacity; ++i) ASSERT_EQ(scif_send(pair.connector, &byte, 1, 0), 1) << i;
  EXPECT_EQ(scif_send(pair.connector, &byte, 1, 0), 0);
  EXPECT_EQ(receive_text(pair.acceptor, 5000, 0), std::string(kCapacity, 'x'));
  EXPECT_EQ(scif_send(pair.connector, &byte, 1, 0), 1);
}

TEST_F(ScifMessage, TheQueueTakesExactly4095BytesOfAnyMessage) {
  const Pair pair;
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(send_text(pair.acceptor, std::string(5000, 'x'), 0), kCapacity);
    EXPECT_EQ(send_text(pair.acceptor, "x", 0), 0);
    EXPECT_EQ(receive_text(pair.connector, 95, 0).size(), 95U);
    EXPECT_EQ(send_text(pair.acceptor, std::string(5000, 'y'), 0), 95);
    EXPECT_EQ(receive_text(pair.connector, 5000, 0), std::string(kCapacity - 95, 'x') + std::string(95, 'y'));
  }
}

TEST_F(ScifMessage, HasNoBorders) {
  const Pair pair;
  EXPECT_EQ(send_text(pair.connector, "abc"), 3);
  EXPECT_EQ(send_text(pair.connector, "defgh"), 5);
  EXPECT_EQ(receive_text(pair.acceptor, 1), "a");
  EXPECT_EQ(receive_text(pair.acceptor, 7), "bcdefgh");
}

TEST_F(ScifMessage, NonBlockingReturnsZeroAndNotEagainWhenNothingMoved) {
  const Pair pair;
  char byte = 0;
  EXPECT_EQ(scif_recv(pair.connector, &byte, 1, 0), 0);
  EXPECT_EQ(send_text(pair.connector, std::string(kCapacity, 'x'), 0), kCapacity);
  EXPECT_EQ(scif_send(pair.connector, &byte, 1, 0), 0);
}

TEST_F(ScifMessage, LenZeroReturnsZeroBeforeAnyStateCheckAndBadArgumentsAreEinval) {
  const Epd epd;
  char byte = 0;
  EXPECT_EQ(scif_send(epd, &byte, 0, 0), 0);
  EXPECT_EQ(scif_recv(epd, &byte, 0, SCIF_RECV_BLOCK), 0);
  const Pair pair;
  EXPECT_FAILS(EINVAL, scif_send(pair.connector, &byte, -1, 0));
  EXPECT_FAILS(EINVAL, scif_recv(pair.connector, &byte, -1, 0));
  EXPECT_FAILS(EINVAL, scif_send(pair.connector, &byte, 1, 2));
  EXPECT_FAILS(EINVAL, scif_recv(pair.connector, &byte, 1, 2));
  EXPECT_EQ(scif_send(pair.connector, &byte, 1, 3), 1) << "bit 0 is there";
}

TEST_F(ScifMessage, NeverConnectedIsEnotconn) {
  const Epd epd;
  const Listening listening;
  char byte = 0;
  for (const scif_epd_t which : {static_cast<int>(epd), static_cast<int>(listening.epd)}) {
    EXPECT_FAILS(ENOTCONN, scif_send(which, &byte, 1, SCIF_SEND_BLOCK));
    EXPECT_FAILS(ENOTCONN, scif_recv(which, &byte, 1, SCIF_RECV_BLOCK));
  }
}

TEST_F(ScifMessage, ABlockingSendOfMoreThanTheQueueHoldsWaitsForTheReceiver) {
  const Pair pair;
  std::atomic<bool> sent{false};
  std::string text(100'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  std::thread sender([&] {
    EXPECT_EQ(send_text(pair.connector, text), 100'000);
    sent = true;
  });
  EXPECT_NE(kernel_events(pair.acceptor, POLLIN, -1), 0);
  EXPECT_FALSE(sent);
  EXPECT_EQ(receive_text(pair.acceptor, text.size()), text);
  sender.join();
}

TEST_F(ScifMessage, ABlockingReceiveLoopsUntilAllHasCome) {
  const Pair pair;
  std::thread sender([&] {
    for (const char c : std::string("in pieces")) {
      ::usleep(1000);
      EXPECT_EQ(send_text(pair.connector, std::string(1, c)), 1);
    }
  });
  EXPECT_EQ(receive_text(pair.acceptor, 9), "in pieces");
  sender.join();
}

TEST_F(ScifMessage, ConcurrentBlockingSendersDoNotInterleave) {
  constexpr int kSenders = 4;
  constexpr int kMessages = 50;
  constexpr std::size_t kBytes = 10'000;
  const Pair pair;
  std::vector<std::thread> senders;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&pair, i] {
      for (int n = 0; n < kMessages; ++n) send_text(pair.connector, std::string(kBytes, static_cast<char>('a' + i)));
    });
  }
  for (int n = 0; n < kSenders * kMessages; ++n) {
    const std::string text = receive_text(pair.acceptor, kBytes);
    ASSERT_EQ(text.size(), kBytes);
    ASSERT_EQ(text, std::string(kBytes, text[0]));
  }
  for (std::thread& sender : senders) sender.join();
}

TEST_F(ScifMessage, ASignalEndsABlockedCallWithEintrOrTheShortCount) {
  const Pair pair;
  const auto interrupted = [&](auto&& call) {
    Child child([&] {
      interrupt_calls();
      return call();
    });
    return child.wait();
  };
  char bytes[8];
  EXPECT_EQ(interrupted([&] { return scif_recv(pair.acceptor, bytes, 8, SCIF_RECV_BLOCK) == -1 && errno == EINTR; }),
            0);
  EXPECT_EQ(send_text(pair.connector, "abc"), 3);
  EXPECT_EQ(interrupted([&] { return scif_recv(pair.acceptor, bytes, 8, SCIF_RECV_BLOCK) == 3; }), 0);
  // In one process: what a child has sent, the next child does not know.
  EXPECT_EQ(interrupted([&] {
              if (send_text(pair.connector, std::string(5000, 'x')) != kCapacity) return false;
              return send_text(pair.connector, "x") == -1 && errno == EINTR;
            }),
            0);
}

TEST_F(ScifMessage, TheFlagsSayWhetherACallBlocksAndNotTheDescriptor) {
  const Pair pair;
  set_nonblocking(pair.acceptor, true);
  std::thread sender([&] {
    ::usleep(20'000);
    EXPECT_EQ(send_text(pair.connector, "ab"), 2);
  });
  EXPECT_EQ(receive_text(pair.acceptor, 2), "ab");
  sender.join();
  EXPECT_EQ(receive_text(pair.connector, 1, 0), "");
}

TEST_F(ScifMessage, ReceiveDrainsWhatIsQueuedAndThenGivesEconnreset) {
  Pair pair;
  EXPECT_EQ(send_text(pair.acceptor, "last words"), 10);
  pair.acceptor.close();
  char byte = 0;
  EXPECT_FAILS(ECONNRESET, scif_send(pair.connector, &byte, 1, SCIF_SEND_BLOCK));
  EXPECT_EQ(receive_text(pair.connector, 4), "last");
  EXPECT_EQ(receive_text(pair.connector, 100), " words") << "a short count";
  EXPECT_FAILS(ECONNRESET, scif_recv(pair.connector, &byte, 1, SCIF_RECV_BLOCK));
  EXPECT_FAILS(ECONNRESET, scif_recv(pair.connector, &byte, 1, 0));
  EXPECT_FAILS(ECONNRESET, scif_send(pair.connector, &byte, 1, 0));
}

TEST_F(ScifMessage, ABlockedReceiverLearnsThatThePeerWasKilled) {
  const Listening listening;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    scif_connect(epd, &to);
    send_text(epd, "abc");
    while (true) ::pause();
    return true;
  });
  const Epd epd(listening.accept());
  EXPECT_EQ(receive_text(epd, 1), "a");
  std::thread killer([&] {
    ::usleep(20'000);
    peer.kill();
  });
  EXPECT_EQ(receive_text(epd, 10), "bc") << "a short count";
  char byte = 0;
  EXPECT_FAILS(ECONNRESET, scif_recv(epd, &byte, 1, SCIF_RECV_BLOCK));
  EXPECT_EQ(events(epd, SCIF_POLLIN), SCIF_POLLHUP);
  killer.join();
}

TEST_F(ScifMessage, ABlockedSenderLearnsThatThePeerWasKilled) {
  const Listening listening;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    scif_connect(epd, &to);
    while (true) ::pause();
    return true;
  });
  const Epd epd(listening.accept());
  Waiting sending([&] { return send_text(epd, std::string(10'000, 'x')); });
  EXPECT_TRUE(sending.waits());
  peer.kill();
  sending.join();
  EXPECT_EQ(sending.result, kCapacity) << "a short count";
  EXPECT_FAILS(ECONNRESET, send_text(epd, "x"));
}

TEST_F(ScifMessage, CloseInOneThreadWakesTheOthers) {
  Pair pair;
  Waiting receiving([epd = int{pair.connector}] {
    char byte = 0;
    return scif_recv(epd, &byte, 1, SCIF_RECV_BLOCK);
  });
  Waiting sending([epd = int{pair.connector}] { return send_text(epd, std::string(10'000, 'x')); });
  scif_pollepd polled{pair.connector, SCIF_POLLIN, 0};
  Waiting polling([&polled] { return scif_poll(&polled, 1, -1); });
  for (const Waiting* waiting : {&receiving, &sending, &polling}) EXPECT_TRUE(waiting->waits());
  pair.connector.close();
  for (Waiting* waiting : {&receiving, &sending, &polling}) waiting->join();
  EXPECT_EQ(receiving.result, -1);
  EXPECT_EQ(receiving.error, ECONNRESET) << std::strerror(receiving.error);
  EXPECT_EQ(sending.result, kCapacity);
  EXPECT_EQ(polling.result, 1);
  EXPECT_EQ(polled.revents, SCIF_POLLNVAL);
}

TEST_F(ScifMessage, ToAnEndpointThatIsClosedWhileItConnectsFailsInAnyMoment) {
  for (int round = 0; round < 50; ++round) {
    const Listening listening;
    const scif_epd_t epd = scif_open();
    std::atomic<bool> done{false};
    Waiting connecting([&] {
      scif_portID to = listening.port;
      return scif_connect(epd, &to);
    });
    Waiting looking([&] {
      char byte = 0;
      while (!done) EXPECT_EQ(scif_send(epd, &byte, 1, 0), -1);
      return 0;
    });
    EXPECT_NE(kernel_events(listening.epd, POLLIN, -1), 0);
    EXPECT_EQ(scif_close(epd), 0);
    connecting.join();
    EXPECT_EQ(connecting.result, -1);
    done = true;
  }
}

TEST_F(ScifMessage, AChildThatClosesItsCopyDisturbsNothing) {
  Pair pair;
  Child child([&] { return scif_close(pair.acceptor) == 0 && scif_close(pair.connector) == 0; });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(send_text(pair.acceptor, "still here"), 10);
  EXPECT_EQ(receive_text(pair.connector, 10), "still here");
}

TEST_F(ScifMessage, AChildMayTakeAnEndpointOver) {
  Pair pair;
  Child child([&] { return receive_text(pair.acceptor, 4) == "ping" && send_text(pair.acceptor, "pong") == 4; });
  pair.acceptor.close();
  EXPECT_EQ(send_text(pair.connector, "ping"), 4);
  EXPECT_EQ(receive_text(pair.connector, 4), "pong");
  EXPECT_EQ(child.wait(), 0);
  await_hang_up(pair.connector);
}

}  // namespace
}  // namespace wherry::scif_test
