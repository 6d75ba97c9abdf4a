// SPDX-License-Identifier: Apache-2.0
// What single calls promise at their edges: deadlines, nothing to move, how often the receiver is told.
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

/// Far more bytes than can be moved before a deadline of milliseconds; pages never touched cost nothing.
class Endless {
 public:
  Endless()
      : start_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::bad_alloc();
  }
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;
  ~Endless() { ::munmap(start_, kBytes); }

  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), kBytes}; }
  static constexpr std::size_t kBytes = std::size_t{8} << 30;

 private:
  void* start_;
};

class StreamCall : public StreamTest {};

TEST_P(StreamCall, ASendThatMakesProgressEndsAtItsDeadline) {
  Streams ends = connect_pair();
  std::thread drain([&] {
    std::vector<std::byte> buffer(1 << 20);
    while (ends.acceptor.receive(buffer, kTimeout).ok()) continue;
  });
  const Endless endless;
  // Space comes back all the time, so that only the deadline can end it.
  const Result result = ends.connector.send(endless.bytes(), 0ms);
  EXPECT_EQ(result.error, ETIMEDOUT);
  EXPECT_LT(result.bytes, 2 * ends.connector.send_capacity());
  ends.connector.close();
  drain.join();
}

TEST_P(StreamCall, AReceiveThatMakesProgressEndsAtItsDeadline) {
  Streams ends = connect_pair();
  std::thread pour([&] {
    const std::vector<std::byte> buffer(1 << 20);
    while (ends.connector.send(buffer, kTimeout).ok()) continue;
  });
  const Endless endless;
  const Result result = ends.acceptor.receive_all(endless.bytes(), 5ms);
  EXPECT_EQ(result.error, ETIMEDOUT);
  EXPECT_LT(result.bytes, Endless::kBytes);
  ends.acceptor.close();
  pour.join();
}

TEST_P(StreamCall, TheLongestTimeoutIsForEver) {
  Streams ends = connect_pair();
  std::thread sender([&] {
    while (ends.acceptor.counters().receive_sleeps == 0) std::this_thread::yield();
    EXPECT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  });
  EXPECT_EQ(ends.acceptor.wait_readable(std::chrono::nanoseconds::max()).bytes, 10U);
  sender.join();
}

TEST_P(StreamCall, MovingNothingReturnsAtOnce) {
  Streams ends = connect_pair();
  const std::span<std::byte> nothing;
  for (const Result& result :
       {ends.acceptor.receive(nothing), ends.acceptor.try_receive(nothing), ends.acceptor.receive_all(nothing),
        ends.connector.send(nothing), ends.connector.try_send(nothing)}) {
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.bytes, 0U);
  }
}

TEST_P(StreamCall, AHeaderAndItsPayloadAreOnePublication) {
  Streams ends = connect_pair();
  std::array<std::byte, 116> bytes{};
  const std::array<iovec, 2> message{iovec{bytes.data(), 16}, iovec{bytes.data() + 16, 100}};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ends.connector.send(message).bytes, bytes.size());
  EXPECT_EQ(ends.connector.counters().sends, 100U);
}

TEST_P(StreamCall, AGatheredSendLargerThanTheRingArrivesInOrder) {
  Streams ends = small_pair();
  constexpr std::size_t kPart = 3000;
  constexpr std::size_t kParts = 20;
  std::thread sender([&] {
    std::vector<std::byte> bytes(kPart * kParts);
    pattern_.fill(bytes, 0);
    std::vector<iovec> parts;
    for (std::size_t i = 0; i < kParts; ++i) parts.push_back({bytes.data() + i * kPart, kPart});
    EXPECT_EQ(ends.connector.send(parts, kTimeout).bytes, bytes.size());
  });
  expect_bytes(ends.acceptor, pattern_, kPart * kParts);
  sender.join();
}

TEST_P(StreamCall, WhatWasAllDeliveredWasSentEvenIfTheReaderHasLeft) {
  for (int i = 0; i < 200; ++i) {
    Streams ends = connect_pair();
    std::thread reader([&] {
      expect_bytes(ends.connector, pattern_, 4096);
      ends.connector.close();
    });
    const Result result = ends.acceptor.send(pattern_.bytes(4096), kTimeout);
    reader.join();
    ASSERT_TRUE(result.ok()) << "after " << i << ": " << result.error;
  }
}

TEST_P(StreamCall, ACancelledStreamCannotBeFinished) {
  Streams ends = connect_pair();
  ends.connector.cancel();
  EXPECT_EQ(ends.connector.finish_sending().error, ECANCELED);
}

TEST_P(StreamCall, AReserveWithoutSpaceArmsTheSendDescriptor) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  for (Regions space; !(space = ends.connector.reserve(4096)).empty();) {
    ASSERT_TRUE(ends.connector.commit(space.size()).ok());
  }
  std::vector<std::byte> buffer(4096);
  ASSERT_TRUE(ends.acceptor.receive_all(buffer, kTimeout).ok());
  EXPECT_TRUE(becomes_readable(descriptor, kTimeout));
}

TEST_P(StreamCall, WithABadSettingNothingIsConnected) {
  const ScopedEnvironment spin("WHERRY_SPIN", "junk");
  EXPECT_EQ(error_of([&] { (void)listen(address()); }), EINVAL);
  EXPECT_EQ(error_of([&] { (void)start_connect(address("0:2000")); }), EINVAL);
}

WHERRY_ON_EVERY_FABRIC(StreamCall);

}  // namespace
}  // namespace wherry::conformance
