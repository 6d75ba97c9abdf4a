// SPDX-License-Identifier: Apache-2.0
// Descriptors of an endpoint that the program makes itself: each is as good as the first, and the endpoint ends with
// the last of them.
#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "base/open_descriptors.hpp"
#include "tests/scif/pages.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifDuplicate : public Scif {};

constexpr int kFree = 900;  // a number that nothing has

void expect_messages(scif_epd_t one, scif_epd_t other) {
  EXPECT_EQ(send_text(one, "ping"), 4) << std::strerror(errno);
  EXPECT_EQ(receive_text(other, 4), "ping");
  EXPECT_EQ(send_text(other, std::string(5000, 'x'), 0), 4095) << "as much as fits";
  EXPECT_EQ(events(one, SCIF_POLLIN, -1), SCIF_POLLIN);
  EXPECT_EQ(kernel_events(one, POLLIN, -1), POLLIN);
  EXPECT_EQ(receive_text(one, 4095), std::string(4095, 'x'));
  EXPECT_EQ(events(one, SCIF_POLLIN), 0);
}

TEST_F(ScifDuplicate, IsAsGoodHoweverItWasMade) {
  const Pair pair;
  const int first = pair.connector;
  for (const int fd : {::dup(first), ::dup2(first, kFree), ::dup3(first, kFree + 1, O_CLOEXEC),
                       ::fcntl(first, F_DUPFD, kFree + 2), ::fcntl(first, F_DUPFD_CLOEXEC, kFree + 3)}) {
    const Epd duplicate(fd);
    expect_messages(duplicate, pair.acceptor);
    EXPECT_EQ(send_text(duplicate, "a"), 1);
    EXPECT_EQ(send_text(first, "b"), 1);
    EXPECT_EQ(send_text(duplicate, "c"), 1);
    EXPECT_EQ(receive_text(pair.acceptor, 3), "abc") << "one endpoint";
  }
  expect_messages(first, pair.acceptor);
}

TEST_F(ScifDuplicate, GoesOnWhenTheFirstIsClosed) {
  for (const bool by_scif : {true, false}) {
    for (const bool known : {true, false}) {
      Pair pair;
      const Pages memory(1);
      const off_t offset = scif_register(pair.connector, memory, kPage, 0, kRw, 0);
      Epd duplicate(::dup(pair.connector));
      if (known) expect_messages(duplicate, pair.acceptor);
      const int first = pair.connector.release();
      EXPECT_EQ(by_scif ? scif_close(first) : ::close(first), 0);
      EXPECT_FAILS(EBADF, scif_bind(first, 0));
      expect_messages(duplicate, pair.acceptor);
      EXPECT_EQ(scif_vwriteto(pair.acceptor, memory, 1, offset, 0), 0) << "its windows are there";
      EXPECT_EQ(scif_unregister(duplicate, offset, kPage), 0);
      duplicate.close();
      char byte = 0;
      EXPECT_FAILS(ECONNRESET, scif_recv(pair.acceptor, &byte, 1, SCIF_RECV_BLOCK));
    }
  }
}

TEST_F(ScifDuplicate, MayBeClosedWithoutHarmToTheFirst) {
  const Pair pair;
  EXPECT_EQ(scif_close(::dup(pair.connector)), 0);
  EXPECT_EQ(::close(::dup(pair.connector)), 0);
  expect_messages(pair.connector, pair.acceptor);
  const int duplicate = ::dup(pair.connector);
  expect_messages(duplicate, pair.acceptor);
  EXPECT_EQ(scif_close(duplicate), 0);
  EXPECT_FAILS(EBADF, scif_close(duplicate));
  expect_messages(pair.connector, pair.acceptor);
}

TEST_F(ScifDuplicate, GoesOnWhenTheFirstNumberIsANewEndpoint) {
  Pair pair;
  const int first = pair.connector.release();
  Epd duplicate(::dup(first));
  ::close(first);
  std::vector<Epd> others(1);
  while (others.back() != first) others.emplace_back();
  EXPECT_GT(scif_bind(first, 0), 0) << "the new one";
  expect_messages(duplicate, pair.acceptor);
  EXPECT_FAILS(ENOTCONN, send_text(first, "x"));
}

TEST_F(ScifDuplicate, PutOverAnotherEndpointEndsThat) {
  Pair pair;
  Pair other;
  ASSERT_EQ(::dup2(pair.connector, other.connector), other.connector);
  char byte = 0;
  EXPECT_FAILS(ECONNRESET, scif_recv(other.acceptor, &byte, 1, SCIF_RECV_BLOCK));
  const Pages memory(1);
  EXPECT_GT(scif_register(other.connector, memory, kPage, 0, kRw, 0), 0);
  expect_messages(other.connector, pair.acceptor);
  pair.connector.close();
  expect_messages(other.connector, pair.acceptor);
}

TEST_F(ScifDuplicate, GoesOnWhenTheFirstNumberIsAPipeThatHasEnded) {
  Child process([] {
    Pair pair;
    const Epd duplicate(::dup(pair.connector));
    const int number = pair.connector.release();
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    EXPECT_EQ(::dup2(pipe[0], number), number);
    ::close(pipe[1]);
    EXPECT_EQ(events(number, SCIF_POLLIN, -1), POLLHUP) << "the pipe's";
    expect_messages(duplicate, pair.acceptor);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifDuplicate, BindsListensAcceptsAndConnects) {
  const Epd listener;
  const Epd same(::dup(listener));
  const int port = scif_bind(same, 0);
  EXPECT_FAILS(EINVAL, scif_bind(listener, 0));
  EXPECT_EQ(scif_listen(listener, 2), 0);
  scif_portID to{.node = 0, .port = static_cast<std::uint16_t>(port)};
  Epd first;
  const Epd connector(::dup(first));
  first.close();
  set_nonblocking(connector, true);
  EXPECT_FAILS(EINPROGRESS, scif_connect(connector, &to));
  scif_portID peer{};
  scif_epd_t made = -1;
  EXPECT_EQ(scif_accept(same, &peer, &made, SCIF_ACCEPT_SYNC), 0);
  const Epd acceptor(made);
  EXPECT_EQ(scif_connect(connector, &to), peer.port);
  expect_messages(connector, acceptor);
}

TEST_F(ScifDuplicate, MayTryAgainAfterARefusalUnderEachNumber) {
  Listening listening;
  const Epd epd;
  const Epd same(::dup(epd));
  set_nonblocking(epd, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  listening.epd.close();
  EXPECT_NE(kernel_events(epd, POLLOUT, -1) & POLLOUT, 0);
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
  const Listening again;
  to = again.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(same, &to));
  const Epd other(again.accept());
  EXPECT_GT(scif_connect(epd, &to), 0);
  expect_messages(same, other);
  expect_messages(epd, other);
}

TEST_F(ScifDuplicate, AWaitingCallGoesOnWhenAnotherDescriptorIsClosed) {
  Pair pair;
  const Epd duplicate(::dup(pair.connector));
  char byte = 0;
  Waiting receiving([&] { return scif_recv(duplicate, &byte, 1, SCIF_RECV_BLOCK); });
  EXPECT_TRUE(receiving.waits());
  EXPECT_EQ(send_text(pair.connector, "x"), 1);
  pair.connector.close();
  EXPECT_TRUE(receiving.waits());
  EXPECT_EQ(receive_text(pair.acceptor, 1), "x");
  EXPECT_EQ(send_text(pair.acceptor, "y"), 1);
  receiving.join();
  EXPECT_EQ(receiving.result, 1);
  EXPECT_EQ(byte, 'y');
  expect_messages(duplicate, pair.acceptor);
}

/// One thread sends and one receives, each by a descriptor of its own that it makes and closes again and again.
TEST_F(ScifDuplicate, ThreadsMakeAndCloseThemWhileOthersUseTheEndpoint) {
  constexpr int kRounds = 300;
  const Pair pair;
  const auto use_anew = [](scif_epd_t epd, const std::function<bool(scif_epd_t, int)>& call) {
    for (int i = 0; i < kRounds; ++i) {
      const int fd = ::dup(epd);
      EXPECT_TRUE(call(fd, i));
      EXPECT_EQ(i % 2 == 0 ? scif_close(fd) : ::close(fd), 0);
    }
  };
  std::thread sender([&] {
    use_anew(pair.connector, [](scif_epd_t fd, int i) {
      return send_text(fd, std::string(1000, static_cast<char>('a' + i % 26))) == 1000;
    });
  });
  use_anew(pair.acceptor, [](scif_epd_t fd, int i) {
    return receive_text(fd, 1000) == std::string(1000, static_cast<char>('a' + i % 26));
  });
  sender.join();
  expect_messages(pair.connector, pair.acceptor);
}

/// Mappings of memory that connections share.
std::ptrdiff_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") != std::string::npos) ++count;
  }
  return count;
}

TEST_F(ScifDuplicate, LeavesNothingBehind) {
  const auto use_some = [] {
    Pair pair;
    const int duplicate = ::dup(pair.connector);
    expect_messages(duplicate, pair.acceptor);
    pair.connector.close();
    expect_messages(duplicate, pair.acceptor);
    EXPECT_EQ(scif_close(duplicate), 0);
  };
  use_some();  // what the process needs once
  const std::size_t descriptors = open_descriptors();
  const std::ptrdiff_t mappings = shared_mappings();
  for (int i = 0; i < 10; ++i) use_some();
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(shared_mappings(), mappings);
}

}  // namespace
}  // namespace wherry::scif_test
