// SPDX-License-Identifier: Apache-2.0
// A call that succeeds leaves errno alone, whatever the library met on the way: programs look at it once, at their end.
#include <sys/mman.h>

#include <thread>

#include "tests/scif/spaces.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifErrno : public Scif {};

constexpr int kUntouched = 4242;  // no error has it

/// The result of a call that is to succeed.
#define KEEPS_ERRNO(call)                                                 \
  [&] {                                                                   \
    errno = kUntouched;                                                   \
    const auto result = call;                                             \
    EXPECT_EQ(errno, kUntouched) << std::strerror(errno) << " in " #call; \
    return result;                                                        \
  }()

TEST_F(ScifErrno, IsLeftAloneByCallsThatConnect) {
  std::uint16_t nodes[4];
  std::uint16_t self = 0;
  EXPECT_EQ(KEEPS_ERRNO(scif_get_nodeIDs(nodes, 4, &self)), 1);
  const Epd listener(KEEPS_ERRNO(scif_open()));
  const int port = KEEPS_ERRNO(scif_bind(listener, 0));
  ASSERT_GT(port, 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_listen(listener, 2)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_get_fd(listener)), listener);
  const Epd epd;
  EXPECT_EQ(KEEPS_ERRNO(scif_bind(epd, 2000)), 2000);
  set_nonblocking(epd, true);
  scif_portID to{.node = 0, .port = static_cast<std::uint16_t>(port)};
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  scif_pollepd polled{listener, SCIF_POLLIN, 0};
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(&polled, 1, -1)), 1);
  scif_portID peer{};
  scif_epd_t accepted = -1;
  EXPECT_EQ(KEEPS_ERRNO(scif_accept(listener, &peer, &accepted, 0)), 0);
  polled = {epd, SCIF_POLLOUT, 0};
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(&polled, 1, -1)), 1);
  EXPECT_EQ(KEEPS_ERRNO(scif_connect(epd, &to)), 2000);
  EXPECT_EQ(KEEPS_ERRNO(scif_close(accepted)), 0);
}

TEST_F(ScifErrno, IsLeftAloneByCallsThatWaitToConnect) {
  const Listening listening;
  scif_portID peer{};
  scif_epd_t accepted = -1;
  Waiting accepting([&] { return scif_accept(listening.epd, &peer, &accepted, SCIF_ACCEPT_SYNC); });
  EXPECT_TRUE(accepting.waits());
  const Epd epd;
  scif_portID to = listening.port;
  EXPECT_GT(KEEPS_ERRNO(scif_connect(epd, &to)), 0);
  accepting.join();
  EXPECT_EQ(accepting.result, 0);
  EXPECT_EQ(accepting.error, 0) << std::strerror(accepting.error);
  const Epd other(accepted);
  const Epd second;
  Waiting connecting([&] { return scif_connect(second, &to); });
  EXPECT_TRUE(connecting.waits());
  const Epd third(listening.accept());
  connecting.join();
  EXPECT_GT(connecting.result, 0);
  EXPECT_EQ(connecting.error, 0) << std::strerror(connecting.error);
}

TEST_F(ScifErrno, IsLeftAloneByMessages) {
  const Pair pair;
  std::string bytes(5000, 'x');
  EXPECT_EQ(KEEPS_ERRNO(scif_recv(pair.acceptor, bytes.data(), 1, 0)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_send(pair.connector, bytes.data(), 0, SCIF_SEND_BLOCK)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_send(pair.connector, bytes.data(), 1, SCIF_SEND_BLOCK)), 1);
  EXPECT_EQ(KEEPS_ERRNO(scif_recv(pair.acceptor, bytes.data(), 1, SCIF_RECV_BLOCK)), 1);
  EXPECT_EQ(KEEPS_ERRNO(scif_send(pair.connector, bytes.data(), 5000, 0)), 4095);
  EXPECT_EQ(KEEPS_ERRNO(scif_send(pair.connector, bytes.data(), 5000, 0)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_recv(pair.acceptor, bytes.data(), 100, 0)), 100);
  EXPECT_EQ(KEEPS_ERRNO(scif_recv(pair.acceptor, bytes.data(), 5000, 0)), 3995);
  EXPECT_EQ(KEEPS_ERRNO(scif_recv(pair.acceptor, bytes.data(), 5000, 0)), 0);
  scif_pollepd polled{pair.acceptor, SCIF_POLLIN | SCIF_POLLOUT, 0};
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(&polled, 1, 0)), 1);
  polled.events = SCIF_POLLIN;
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(&polled, 1, 0)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(&polled, 1, 1)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_poll(nullptr, 0, 1)), 0);
}

TEST_F(ScifErrno, IsLeftAloneByMessagesThatWait) {
  const Pair pair;
  std::string bytes(10'000, 'x');
  Waiting receiving([&] { return scif_recv(pair.acceptor, bytes.data(), 2, SCIF_RECV_BLOCK); });
  EXPECT_TRUE(receiving.waits());
  EXPECT_EQ(send_text(pair.connector, "ab"), 2);
  receiving.join();
  EXPECT_EQ(receiving.result, 2);
  EXPECT_EQ(receiving.error, 0) << std::strerror(receiving.error);
  Waiting sending([&] { return scif_send(pair.connector, bytes.data(), 10'000, SCIF_SEND_BLOCK); });
  EXPECT_TRUE(sending.waits());
  EXPECT_EQ(receive_text(pair.acceptor, 10'000).size(), 10'000U);
  sending.join();
  EXPECT_EQ(sending.result, 10'000);
  EXPECT_EQ(sending.error, 0) << std::strerror(sending.error);
  scif_pollepd polled{pair.acceptor, SCIF_POLLIN, 0};
  Waiting polling([&] { return scif_poll(&polled, 1, -1); });
  EXPECT_TRUE(polling.waits());
  EXPECT_EQ(send_text(pair.connector, "c"), 1);
  polling.join();
  EXPECT_EQ(polling.result, 1);
  EXPECT_EQ(polling.error, 0) << std::strerror(polling.error);
}

/// Each of them by another way into the memory file, or past it.
TEST_F(ScifErrno, IsLeftAloneByRegistering) {
  const Pair pair;
  const Pages fresh(2);
  const Pages read_only(1);
  ASSERT_EQ(::mprotect(read_only, kPage, PROT_READ), 0);
  void* const shared = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* heap = nullptr;
  ASSERT_EQ(::posix_memalign(&heap, kPage, kPage), 0);
  alignas(kPage) char stack[kPage];
  for (char* const memory : {static_cast<char*>(fresh), static_cast<char*>(read_only), static_cast<char*>(shared),
                             static_cast<char*>(heap), stack}) {
    const off_t offset = KEEPS_ERRNO(scif_register(pair.connector, memory, kPage, 0, SCIF_PROT_READ, 0));
    ASSERT_GT(offset, 0);
    EXPECT_EQ(KEEPS_ERRNO(scif_register(pair.acceptor, memory, kPage, 0, SCIF_PROT_READ, 0)) > 0, true);
    char byte = 0;
    EXPECT_EQ(KEEPS_ERRNO(scif_vreadfrom(pair.acceptor, &byte, 1, offset, 0)), 0);
    EXPECT_EQ(KEEPS_ERRNO(scif_unregister(pair.connector, offset, kPage)), 0);
    EXPECT_EQ(KEEPS_ERRNO(scif_unregister(pair.connector, offset, kPage)), 0);
  }
  EXPECT_EQ(KEEPS_ERRNO(scif_register(pair.connector, fresh, 2 * kPage, 0x80000, kRw, SCIF_MAP_FIXED)), 0x80000);
  std::free(heap);
  ::munmap(shared, kPage);
}

TEST_F(ScifErrno, IsLeftAloneByRmaAndFences) {
  const Spaces spaces;
  const Pages local(2);
  EXPECT_EQ(KEEPS_ERRNO(scif_writeto(spaces.epd, kNear, kPage, kFar, 0)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_readfrom(spaces.epd, kNear, kPage, kFar, SCIF_RMA_SYNC)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_vwriteto(spaces.epd, local, kPage, kFar, SCIF_RMA_ORDERED)), 0);
  EXPECT_EQ(KEEPS_ERRNO(scif_vreadfrom(spaces.epd, local, kPage, kFar, SCIF_RMA_USECPU)), 0);
  for (const int initiator : {SCIF_FENCE_INIT_SELF, SCIF_FENCE_INIT_PEER}) {
    int mark = 0;
    EXPECT_EQ(KEEPS_ERRNO(scif_fence_mark(spaces.epd, initiator, &mark)), 0);
    EXPECT_EQ(KEEPS_ERRNO(scif_fence_wait(spaces.epd, mark)), 0);
    const int flags = initiator | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE;
    EXPECT_EQ(KEEPS_ERRNO(scif_fence_signal(spaces.epd, kNear, 1, kFar, 2, flags)), 0);
  }
  void* const mapped = KEEPS_ERRNO(scif_mmap(nullptr, kPage, kRw, 0, spaces.epd, kFar));
  ASSERT_NE(mapped, SCIF_MMAP_FAILED);
  EXPECT_EQ(KEEPS_ERRNO(scif_munmap(mapped, kPage)), 0);
}

}  // namespace
}  // namespace wherry::scif_test
