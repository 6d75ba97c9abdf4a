// SPDX-License-Identifier: Apache-2.0
// Where descriptors are short, or the kernel refuses to poll: what waits waits all the same, and what failed may be
// tried again. Each of these tests is a process of its own.
#include <sys/syscall.h>

#include "tests/common/no_descriptors.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifNarrow : public Scif {};
class ScifWithoutDescriptors : public Scif {
  void SetUp() override {
    if (!NoDescriptors::kPossible) GTEST_SKIP() << "the sanitizer needs some";
  }
};

TEST_F(ScifWithoutDescriptors, AnAttemptThatFoundNoDescriptorsMayBeRepeated) {
  Child process([] {
    const Listening listening;
    const Epd epd;
    set_nonblocking(epd, true);
    scif_portID to = listening.port;
    {
      const NoDescriptors none;
      EXPECT_FAILS(EMFILE, scif_connect(epd, &to));
    }
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    const Epd other(listening.accept());
    EXPECT_GT(scif_connect(epd, &to), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifWithoutDescriptors, ARefusedAttemptMayBeRepeatedOnceThereAreDescriptorsAgain) {
  Child process([] {
    Listening listening;
    const Epd epd;
    set_nonblocking(epd, true);
    scif_portID to = listening.port;
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    {
      const NoDescriptors none;
      listening.epd.close();
      EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
      EXPECT_FAILS(EMFILE, scif_connect(epd, &to));
      EXPECT_FAILS(EMFILE, scif_listen(epd, 1));
    }
    const Listening again;
    to = again.port;
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    const Epd other(again.accept());
    EXPECT_GT(scif_connect(epd, &to), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

void refuse_to_poll() {
#ifdef SYS_poll
  refuse_calls({SYS_poll, SYS_ppoll}, EPERM);
#else
  refuse_calls({SYS_ppoll}, EPERM);
#endif
}

/// A peer that sends one byte after a while, and another while later is gone.
bool one_byte_and_the_end_come() {
  Pair pair;
  Child peer([&] {
    ::close(pair.acceptor);
    ::usleep(20'000);
    const bool sent = send_text(pair.connector, "x") == 1;
    ::usleep(20'000);
    return sent;
  });
  pair.connector.close();
  refuse_to_poll();
  EXPECT_EQ(receive_text(pair.acceptor, 1), "x") << std::strerror(errno);
  char byte = 0;
  EXPECT_FAILS(ECONNRESET, scif_recv(pair.acceptor, &byte, 1, SCIF_RECV_BLOCK));
  EXPECT_FAILS(ECONNRESET, scif_send(pair.acceptor, &byte, 1, SCIF_SEND_BLOCK));
  return peer.wait() == 0 && !::testing::Test::HasFailure();
}

TEST_F(ScifNarrow, WhoWaitsWithoutPollGetsWhatComesAndTheEnd) {
  Child process([] { return one_byte_and_the_end_come(); });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifWithoutDescriptors, WhoWaitsGetsWhatComesAndTheEnd) {
  Child process([] {
    Pair pair;
    (void)events(pair.acceptor, SCIF_POLLIN, 1);  // a thread's first sleep makes a descriptor
    Child peer([&] {
      ::close(pair.acceptor);
      ::usleep(20'000);
      return send_text(pair.connector, "x") == 1;
    });
    pair.connector.close();
    const NoDescriptors none;
    EXPECT_EQ(receive_text(pair.acceptor, 1), "x") << std::strerror(errno);
    char byte = 0;
    EXPECT_FAILS(ECONNRESET, scif_recv(pair.acceptor, &byte, 1, SCIF_RECV_BLOCK));
    return peer.wait() == 0 && !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifNarrow, WithoutPollRequestsAreAcceptedAndAttemptsAnswered) {
  const Listening listening;
  Child connector([&] {
    refuse_to_poll();
    ::usleep(20'000);
    const Epd epd;
    scif_portID to = listening.port;
    return scif_connect(epd, &to) > 0 && send_text(epd, "hello") == 5;
  });
  Child acceptor([&] {
    refuse_to_poll();
    const Epd epd(listening.accept());
    return receive_text(epd, 5) == "hello";
  });
  EXPECT_EQ(acceptor.wait(), 0);
  EXPECT_EQ(connector.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
