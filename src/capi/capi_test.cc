// SPDX-License-Identifier: Apache-2.0
// The streams of wherry.h as a C program uses them. tests/conformance tests the guarantees of streams themselves.
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <wherry/wherry.h>

#include "base/scoped_environment.hpp"

namespace {

using wherry::ScopedEnvironment;

constexpr int64_t kTimeout = 3'600'000'000'000;  // an hour: the watchdog ends the test earlier

bool readable(int fd, int timeout_ms) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, timeout_ms) == 1;
}

class CApi : public ::testing::Test {
 public:
  CApi(const CApi&) = delete;
  CApi& operator=(const CApi&) = delete;

 protected:
  CApi() {
    const wherry_options acceptors{.ring_bytes = 4096, .flags = WHERRY_WINDOWS, .reserved = 0};
    const wherry_options connectors{.ring_bytes = 8192, .flags = WHERRY_WINDOWS, .reserved = 0};
    EXPECT_EQ(wherry_listen("wherry+inproc://*:*", &acceptors, &listener_), 0) << wherry_last_error();
    EXPECT_GT(wherry_listener_address(listener_, address_, sizeof address_), 0);
    wherry_connecting connecting = WHERRY_NONE;
    EXPECT_EQ(wherry_start_connect(address_, &connectors, WHERRY_TIMEOUT_DEFAULT, &connecting), 0)
        << wherry_last_error();
    EXPECT_EQ(wherry_try_finish(connecting, &connector_), -EAGAIN) << "nobody has accepted yet";
    EXPECT_TRUE(readable(wherry_listener_descriptor(listener_), -1));
    EXPECT_EQ(wherry_accept(listener_, 0, &acceptor_), 0) << wherry_last_error();
    EXPECT_TRUE(readable(wherry_connecting_descriptor(connecting), -1));
    EXPECT_EQ(wherry_try_finish(connecting, &connector_), 0) << wherry_last_error();
    wherry_connecting_close(connecting);
  }
  ~CApi() override {
    wherry_stream_close(connector_);
    wherry_stream_close(acceptor_);
    wherry_listener_close(listener_);
  }

  static void end(wherry_stream& stream) {
    wherry_stream_close(stream);
    stream = WHERRY_NONE;
  }

  wherry_listener listener_ = WHERRY_NONE;
  wherry_stream connector_ = WHERRY_NONE;
  wherry_stream acceptor_ = WHERRY_NONE;
  char address_[64] = "";
};

TEST_F(CApi, SendsAndReceivesAndTellsTheEnd) {
  EXPECT_EQ(wherry_send(connector_, "hello", 5, kTimeout), 5);
  char text[16] = "";
  EXPECT_EQ(wherry_receive(acceptor_, text, sizeof text, kTimeout), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(wherry_finish_sending(connector_), 0);
  EXPECT_EQ(wherry_receive(acceptor_, text, sizeof text, kTimeout), 0);
  EXPECT_EQ(wherry_send(connector_, "x", 1, kTimeout), -EPIPE);
}

TEST_F(CApi, VectorsAreOneMessageOfBytes) {
  char here[] = "hello, ", there[] = "world";
  const iovec out[] = {{here, 7}, {there, 5}};
  EXPECT_EQ(wherry_sendv(connector_, out, 2, kTimeout), 12);
  char first[4] = {}, second[8] = {};
  const iovec in[] = {{first, 4}, {second, 8}};
  EXPECT_EQ(wherry_receivev(acceptor_, in, 2, kTimeout), 12);
  EXPECT_EQ(std::string(first, 4) + std::string(second, 8), "hello, world");
}

TEST_F(CApi, ReceiveAllIsShortOnlyAtTheEnd) {
  std::vector<unsigned char> sent(100'000), received(sent.size() + 1);
  std::iota(sent.begin(), sent.end(), 0);
  std::thread sender([&] {
    EXPECT_EQ(wherry_send(connector_, sent.data(), sent.size(), kTimeout), 100'000);
    EXPECT_EQ(wherry_finish_sending(connector_), 0);
  });
  EXPECT_EQ(wherry_receive_all(acceptor_, received.data(), received.size(), kTimeout), 100'000);
  sender.join();
  received.pop_back();
  EXPECT_EQ(received, sent);
}

TEST_F(CApi, WouldBlockIsEagainAndAFullRingTakesAPart) {
  char byte = 0;
  EXPECT_EQ(wherry_try_receive(acceptor_, &byte, 1), -EAGAIN);
  const std::vector<char> much(10'000, 'x');
  EXPECT_EQ(wherry_try_send(connector_, much.data(), much.size()), 4096);
  EXPECT_EQ(wherry_try_send(connector_, much.data(), 1), -EAGAIN);
  EXPECT_EQ(wherry_send(connector_, much.data(), 1, 1'000'000), -ETIMEDOUT);
  const int space = wherry_send_descriptor(connector_);
  EXPECT_EQ(wherry_try_send(connector_, much.data(), 1), -EAGAIN);
  std::vector<char> taken(4096);
  EXPECT_EQ(wherry_receive_all(acceptor_, taken.data(), taken.size(), kTimeout), 4096);
  EXPECT_TRUE(readable(space, -1));
  EXPECT_GE(wherry_wait_writable(connector_, 1000, kTimeout), 1000);
}

TEST_F(CApi, TheReceiveDescriptorIsReadableWhileBytesWait) {
  const int fd = wherry_receive_descriptor(acceptor_);
  ASSERT_GE(fd, 0);
  char byte = 0;
  EXPECT_EQ(wherry_try_receive(acceptor_, &byte, 1), -EAGAIN);
  EXPECT_EQ(wherry_send(connector_, "x", 1, kTimeout), 1);
  EXPECT_TRUE(readable(fd, -1));
  EXPECT_EQ(wherry_wait_readable(acceptor_, kTimeout), 1);
  EXPECT_EQ(wherry_try_receive(acceptor_, &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(CApi, ZeroCopyOnBothSides) {
  iovec regions[2] = {};
  ASSERT_GE(wherry_reserve(connector_, 3, regions), 3);
  std::memcpy(regions[0].iov_base, "abc", 3);
  EXPECT_EQ(wherry_commit(connector_, 3), 3);
  ASSERT_EQ(wherry_peek(acceptor_, 100, regions), 3);
  EXPECT_EQ(std::string(static_cast<char*>(regions[0].iov_base), regions[0].iov_len), "abc");
  EXPECT_EQ(wherry_consume(acceptor_, 4), -EINVAL);
  EXPECT_EQ(wherry_consume(acceptor_, 3), 3);
  EXPECT_EQ(wherry_peek(acceptor_, 100, regions), 0);
}

TEST_F(CApi, APeerThatClosesWithoutFinishingItsReceivingIsTold) {
  end(acceptor_);
  char byte = 0;
  EXPECT_EQ(wherry_send(connector_, "x", 1, kTimeout), -EPIPE);
  EXPECT_EQ(wherry_receive(connector_, &byte, 1, kTimeout), 0);
}

TEST_F(CApi, CancelEndsABlockedCall) {
  std::thread blocked([&] {
    char byte = 0;
    EXPECT_EQ(wherry_receive(acceptor_, &byte, 1, WHERRY_FOREVER), -ECANCELED);
  });
  EXPECT_EQ(wherry_cancel(acceptor_), 0);
  blocked.join();
}

TEST_F(CApi, TellsThePeerAndTheCapacities) {
  static_assert(sizeof(wherry_peer) == 24);
  wherry_peer peer{};
  ASSERT_EQ(wherry_get_peer(connector_, &peer), 0);
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ("wherry+inproc://" + std::to_string(peer.node) + ":" + std::to_string(peer.port), address_);
  wherry_capacities capacities{};
  ASSERT_EQ(wherry_get_capacities(connector_, &capacities), 0);
  EXPECT_EQ(capacities.send, 4096U);
  EXPECT_EQ(capacities.receive, 8192U);
}

TEST_F(CApi, AcceptWithoutAConnectorIsEagainOrTimesOut) {
  wherry_stream stream = WHERRY_NONE;
  EXPECT_EQ(wherry_accept(listener_, 0, &stream), -EAGAIN);
  EXPECT_EQ(wherry_accept(listener_, 1'000'000, &stream), -ETIMEDOUT);
  EXPECT_EQ(stream.impl, nullptr);
}

TEST_F(CApi, ANoneHandleIsRefusedByEveryCall) {
  const wherry_stream none = WHERRY_NONE;
  iovec regions[2] = {};
  wherry_peer peer{};
  wherry_capacities capacities{};
  char byte = 0;
  uint64_t offset = 0;
  void* start = nullptr;
  wherry_stream place = WHERRY_NONE;
  for (const int64_t result : {wherry_send(none, "x", 1, 0),
                               wherry_sendv(none, regions, 2, 0),
                               wherry_receive(none, &byte, 1, 0),
                               wherry_receivev(none, regions, 2, 0),
                               wherry_receive_all(none, &byte, 1, 0),
                               wherry_try_send(none, "x", 1),
                               wherry_try_receive(none, &byte, 1),
                               wherry_reserve(none, 1, regions),
                               wherry_commit(none, 0),
                               wherry_peek(none, 1, regions),
                               wherry_consume(none, 0),
                               wherry_wait_readable(none, 0),
                               wherry_wait_writable(none, 1, 0),
                               int64_t{wherry_receive_descriptor(none)},
                               int64_t{wherry_send_descriptor(none)},
                               int64_t{wherry_register(none, &byte, 1, WHERRY_READ, WHERRY_ANYWHERE, &offset)},
                               int64_t{wherry_unregister(none, 0, 1)},
                               int64_t{wherry_write_to(none, 0, 1, 0, 0)},
                               int64_t{wherry_read_from(none, 0, 1, 0, 0)},
                               int64_t{wherry_vwrite_to(none, "x", 1, 0, 0)},
                               int64_t{wherry_vread_from(none, &byte, 1, 0, 0)},
                               int64_t{wherry_fence_mark(none, 0, &offset)},
                               int64_t{wherry_fence_wait(none, 0, 0, 0)},
                               int64_t{wherry_fence_signal(none, 0, nullptr, nullptr)},
                               int64_t{wherry_map(none, 0, 1, WHERRY_READ, &start)},
                               int64_t{wherry_finish_sending(none)},
                               int64_t{wherry_cancel(none)},
                               int64_t{wherry_get_peer(none, &peer)},
                               int64_t{wherry_get_capacities(none, &capacities)},
                               int64_t{wherry_accept(WHERRY_NONE, 0, &place)},
                               int64_t{wherry_listener_descriptor(WHERRY_NONE)},
                               int64_t{wherry_listener_address(WHERRY_NONE, &byte, 1)},
                               int64_t{wherry_try_finish(WHERRY_NONE, &place)},
                               int64_t{wherry_connecting_descriptor(WHERRY_NONE)}}) {
    EXPECT_EQ(result, -EBADF);
  }
  wherry_stream_close(none);
  wherry_listener_close(WHERRY_NONE);
  wherry_connecting_close(WHERRY_NONE);
}

TEST_F(CApi, MissingArgumentsAreRefused) {
  EXPECT_EQ(wherry_send(connector_, nullptr, 1, 0), -EINVAL);
  EXPECT_EQ(wherry_send(connector_, nullptr, 0, 0), 0);
  EXPECT_EQ(wherry_sendv(connector_, nullptr, 1, 0), -EINVAL);
  const iovec buffer{};
  EXPECT_EQ(wherry_sendv(connector_, &buffer, -1, 0), -EINVAL);
  EXPECT_EQ(wherry_receive(connector_, nullptr, 1, 0), -EINVAL);
  EXPECT_EQ(wherry_reserve(connector_, 1, nullptr), -EINVAL);
  EXPECT_EQ(wherry_get_peer(connector_, nullptr), -EINVAL);
  EXPECT_EQ(wherry_listen(nullptr, nullptr, &listener_), -EINVAL);
  EXPECT_EQ(wherry_connect(address_, nullptr, 0, nullptr), -EINVAL);
}

TEST_F(CApi, RegisteredMemoryIsWrittenReadMappedAndSignalled) {
  constexpr std::size_t kBytes = 8192;
  auto* far = static_cast<unsigned char*>(std::aligned_alloc(4096, kBytes));
  std::memset(far, 1, kBytes);
  uint64_t there = 0;
  ASSERT_EQ(wherry_register(acceptor_, far, kBytes, WHERRY_READ | WHERRY_WRITE, WHERRY_ANYWHERE, &there), 0);
  std::vector<unsigned char> here(kBytes, 7);
  EXPECT_EQ(wherry_vwrite_to(connector_, here.data(), 5000, there, WHERRY_COMPLETE), 0);
  const wherry_signal word{.offset = there + 8000, .value = 42};
  EXPECT_EQ(wherry_fence_signal(connector_, WHERRY_STARTED_HERE, nullptr, &word), 0);
  uint64_t seen = 0, mark = 0;
  std::memcpy(&seen, far + 8000, sizeof seen);
  EXPECT_EQ(seen, 42U);
  EXPECT_EQ(far[4999], 7);
  EXPECT_EQ(wherry_vread_from(connector_, here.data(), kBytes, there, WHERRY_COMPLETE), 0);
  EXPECT_EQ(here[5000], 1);
  EXPECT_EQ(wherry_fence_mark(connector_, WHERRY_STARTED_HERE, &mark), 0);
  EXPECT_EQ(wherry_fence_wait(connector_, WHERRY_STARTED_HERE, mark, kTimeout), 0);
  void* start = nullptr;
  ASSERT_EQ(wherry_map(connector_, there, kBytes, WHERRY_READ | WHERRY_WRITE, &start), 0);
  static_cast<unsigned char*>(start)[6000] = 9;
  EXPECT_EQ(far[6000], 9);
  EXPECT_EQ(wherry_unmap(start, kBytes), 0);
  EXPECT_EQ(wherry_unregister(acceptor_, there, kBytes), 0);
  EXPECT_EQ(wherry_vwrite_to(connector_, here.data(), 1, there, 0), -ENXIO);
  std::free(far);
}

TEST_F(CApi, TransfersBetweenWindowsOfBothSides) {
  constexpr std::size_t kBytes = 4096;
  auto* near = static_cast<unsigned char*>(std::aligned_alloc(4096, kBytes));
  auto* far = static_cast<unsigned char*>(std::aligned_alloc(4096, kBytes));
  std::memset(near, 3, kBytes);
  std::memset(far, 4, kBytes);
  uint64_t here = 0, there = 0;
  ASSERT_EQ(wherry_register(connector_, near, kBytes, WHERRY_READ | WHERRY_WRITE, 1 << 20, &here), 0);
  ASSERT_EQ(wherry_register(acceptor_, far, kBytes, WHERRY_READ | WHERRY_WRITE, WHERRY_ANYWHERE, &there), 0);
  EXPECT_EQ(here, 1U << 20);
  EXPECT_EQ(wherry_write_to(connector_, here, 100, there + 1, WHERRY_ORDERED), 0);
  EXPECT_EQ(far[0] + far[1] + far[100] + far[101], 4 + 3 + 3 + 4);
  EXPECT_EQ(wherry_read_from(connector_, here + 200, 10, there + 2000, 0), 0);
  EXPECT_EQ(near[199] + near[200], 3 + 4);
  std::free(near);
  std::free(far);
}

TEST_F(CApi, BadArgumentsOfWindowsAreRefused) {
  uint64_t offset = 0;
  char byte = 0;
  void* start = nullptr;
  EXPECT_EQ(wherry_register(connector_, &byte, 4096, 0, WHERRY_ANYWHERE, &offset), -EINVAL);
  EXPECT_EQ(wherry_register(connector_, nullptr, 4096, WHERRY_READ, WHERRY_ANYWHERE, &offset), -EINVAL);
  EXPECT_EQ(wherry_register(connector_, &byte, 4096, WHERRY_READ, -2, &offset), -EINVAL);
  EXPECT_EQ(wherry_vwrite_to(connector_, &byte, 1, 0, 64), -EINVAL);
  EXPECT_EQ(wherry_fence_mark(connector_, 2, &offset), -EINVAL);
  EXPECT_EQ(wherry_map(connector_, 4096, 4096, WHERRY_READ, &start), -ENXIO);
  const wherry_options unknown{.ring_bytes = 0, .flags = 4, .reserved = 0};
  wherry_stream stream = WHERRY_NONE;
  EXPECT_EQ(wherry_connect(address_, &unknown, 0, &stream), -EINVAL);
}

TEST(CApiConnect, WaitsForAListener) {
  const char* where = "wherry+inproc://0:4321";
  wherry_connecting connecting = WHERRY_NONE;
  wherry_stream connected = WHERRY_NONE, accepted = WHERRY_NONE;
  EXPECT_EQ(wherry_connect(where, nullptr, 0, &connected), -ECONNREFUSED);
  EXPECT_EQ(wherry_start_connect(where, nullptr, 0, &connecting), -ECONNREFUSED);
  EXPECT_EQ(wherry_connect(where, nullptr, 5'000'000, &connected), -ECONNREFUSED);
  ASSERT_EQ(wherry_start_connect(where, nullptr, WHERRY_FOREVER, &connecting), 0) << wherry_last_error();
  EXPECT_EQ(wherry_try_finish(connecting, &connected), -EAGAIN);
  wherry_listener listener = WHERRY_NONE;
  ASSERT_EQ(wherry_listen(where, nullptr, &listener), 0) << wherry_last_error();
  while (!readable(wherry_listener_descriptor(listener), 0)) {
    ASSERT_TRUE(readable(wherry_connecting_descriptor(connecting), -1));
    ASSERT_EQ(wherry_try_finish(connecting, &connected), -EAGAIN);
  }
  EXPECT_EQ(wherry_accept(listener, 0, &accepted), 0);
  ASSERT_TRUE(readable(wherry_connecting_descriptor(connecting), -1));
  EXPECT_EQ(wherry_try_finish(connecting, &connected), 0) << wherry_last_error();
  wherry_connecting_close(connecting);
  wherry_stream_close(connected);
  wherry_stream_close(accepted);
  wherry_listener_close(listener);
}

TEST(CApiConnect, BlocksUntilThereIsAListener) {
  for (const int64_t timeout : {WHERRY_TIMEOUT_DEFAULT, WHERRY_FOREVER, kTimeout}) {
    wherry_stream connected = WHERRY_NONE, accepted = WHERRY_NONE;
    wherry_listener listener = WHERRY_NONE;
    std::thread connecting(
        [&] { EXPECT_EQ(wherry_connect("wherry+inproc://0:4321", nullptr, timeout, &connected), 0); });
    EXPECT_EQ(wherry_listen("wherry+inproc://0:4321", nullptr, &listener), 0) << wherry_last_error();
    EXPECT_EQ(wherry_accept(listener, WHERRY_FOREVER, &accepted), 0);
    connecting.join();
    wherry_stream_close(connected);
    wherry_stream_close(accepted);
    wherry_listener_close(listener);
  }
}

TEST_F(CApi, AFenceHasEachKindOfTimeout) {
  uint64_t mark = 0;
  ASSERT_EQ(wherry_fence_mark(connector_, WHERRY_STARTED_HERE, &mark), 0);
  for (const int64_t timeout : {int64_t{0}, kTimeout, INT64_MAX, WHERRY_FOREVER, WHERRY_TIMEOUT_DEFAULT})
    EXPECT_EQ(wherry_fence_wait(connector_, WHERRY_STARTED_HERE, mark, timeout), 0) << timeout;
  ASSERT_EQ(wherry_fence_mark(connector_, WHERRY_STARTED_BY_PEER, &mark), 0);
  for (const int64_t timeout : {int64_t{0}, INT64_MAX, WHERRY_FOREVER, WHERRY_TIMEOUT_DEFAULT})
    EXPECT_EQ(wherry_fence_wait(connector_, WHERRY_STARTED_BY_PEER, mark, timeout), 0) << timeout;
}

TEST(CApiErrors, SayWhatIsWrongAndWhatToDo) {
  const ScopedEnvironment job("WHERRY_JOB", "capi-errors");
  wherry_stream stream = WHERRY_NONE;
  EXPECT_EQ(wherry_connect("wherry://0:2000", nullptr, 0, &stream), -ECONNREFUSED);
  EXPECT_NE(std::string(wherry_last_error()).find("wherry://0:2000"), std::string::npos) << wherry_last_error();
  wherry_listener listener = WHERRY_NONE;
  EXPECT_EQ(wherry_listen("nonsense", nullptr, &listener), -EINVAL);
  EXPECT_NE(std::string(wherry_last_error()).find("nonsense"), std::string::npos) << wherry_last_error();
}

TEST(CApiErrors, AnAddressIsCutWhereItDoesNotFit) {
  wherry_listener listener = WHERRY_NONE;
  ASSERT_EQ(wherry_listen("wherry+inproc://0:1234", nullptr, &listener), 0);
  char text[8] = "";
  EXPECT_EQ(wherry_listener_address(listener, text, sizeof text), 22);
  EXPECT_STREQ(text, "wherry+");
  EXPECT_EQ(wherry_listener_address(listener, nullptr, 0), 22);
  wherry_listener_close(listener);
}

}  // namespace
