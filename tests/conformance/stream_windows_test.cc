// SPDX-License-Identifier: Apache-2.0
// The windows of a stream as a program sees them. What windows promise is tested in window_*_test.cc.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kWindowBytes = 16 * 4096;

/// Whole pages for nothing else.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(
            static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
            bytes) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(bytes_.data(), bytes_.size()); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

class StreamWindows : public StreamTest {
 protected:
  [[nodiscard]] Streams pair(bool connector = true, bool acceptor = true) const {
    return connect_pair({.ring_bytes = 8192, .windows = connector}, {.ring_bytes = 65536, .windows = acceptor});
  }
};

TEST_P(StreamWindows, BothSidesReachWhatTheOtherRegistered) {
  Streams ends = pair();
  const Pages near(kWindowBytes), far(kWindowBytes);
  const std::uint64_t here = ends.connector.windows().add(near.bytes());
  const std::uint64_t there = ends.acceptor.windows().add(far.bytes());
  const auto sent = pattern_.bytes(kWindowBytes);
  std::memcpy(near.bytes().data(), sent.data(), sent.size());
  EXPECT_EQ(ends.connector.windows().write_to(here, kWindowBytes, there, {.complete = true}).bytes, kWindowBytes);
  EXPECT_TRUE(pattern_.matches(far.bytes(), 0));
  std::vector<std::byte> got(1000);
  EXPECT_TRUE(ends.acceptor.windows().read_from(std::span(got), here + 77, {.complete = true}).ok());
  EXPECT_TRUE(pattern_.matches(got, 77));
}

TEST_P(StreamWindows, LeaveTheStreamItsBytes) {
  Streams ends = pair();
  const Pages far(kWindowBytes);
  const std::uint64_t there = ends.acceptor.windows().add(far.bytes());
  const auto sent = pattern_.bytes(300'000);
  std::thread sender([&] {
    std::span<const std::byte> rest = sent;
    while (!rest.empty()) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), 5000));
      EXPECT_TRUE(ends.connector.send(part).ok());
      EXPECT_TRUE(ends.connector.windows().write_to(part, there).ok());
      rest = rest.subspan(part.size());
    }
    EXPECT_TRUE(ends.connector.finish_sending().ok());
  });
  expect_all_then_end(ends.acceptor, pattern_, sent.size());
  sender.join();
}

TEST_P(StreamWindows, WhoSeesASignalSeesTheBytesBeforeIt) {
  Streams ends = pair();
  const Pages far(kWindowBytes);
  const std::uint64_t there = ends.acceptor.windows().add(far.bytes());
  auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(far.bytes().data());
  const auto sent = pattern_.bytes(40'000);
  Windows windows = ends.connector.windows();
  EXPECT_TRUE(windows.write_to(std::span(sent), there + 4096).ok());
  EXPECT_TRUE(windows.signal({}, Signal{.offset = there, .value = 7}).ok());
  while (word.load(std::memory_order_acquire) != 7) std::this_thread::yield();
  EXPECT_TRUE(pattern_.matches(far.bytes().subspan(4096, sent.size()), 0));
  EXPECT_TRUE(windows.wait(windows.mark()).ok());
}

TEST_P(StreamWindows, AreRefusedUnlessBothSidesAskForThem) {
  for (const auto& [connector, acceptor] : {std::pair{true, false}, {false, true}, {false, false}}) {
    Streams ends = pair(connector, acceptor);
    EXPECT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    for (Stream* stream : {&ends.connector, &ends.acceptor}) {
      try {
        (void)stream->windows();
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        EXPECT_EQ(error.code().value(), ENOTSUP);
      }
    }
  }
  Stream closed;
  EXPECT_THROW((void)closed.windows(), Error);
}

TEST_P(StreamWindows, ErrorsSayWhatIsWrong) {
  Streams ends = pair();
  Windows windows = ends.connector.windows();
  const Pages near(kWindowBytes);
  EXPECT_EQ(windows.write_to(std::span<const std::byte>(near.bytes()), 4096).error, ENXIO);
  EXPECT_EQ(windows.remove(4096, 4096).error, ENXIO);
  const std::uint64_t fixed = windows.add(near.bytes(), Access::read, 1 << 20);
  EXPECT_EQ(fixed, 1U << 20);
  const auto code_of = [](auto&& call) {
    try {
      call();
      return 0;
    } catch (const Error& error) {
      return error.code().value();
    }
  };
  EXPECT_EQ(code_of([&] { (void)windows.add(near.bytes(), Access::read, 1 << 20); }), EADDRINUSE);
  EXPECT_EQ(code_of([&] { (void)windows.add(near.bytes().subspan(1)); }), EINVAL);
  EXPECT_NE(code_of([&] { (void)windows.map(fixed, kWindowBytes); }), 0) << "the peer has registered nothing";
  EXPECT_TRUE(windows.remove(fixed, kWindowBytes).ok());
}

TEST_P(StreamWindows, WhatIsMappedOutlivesTheStream) {
  Streams ends = pair();
  const Pages far(kWindowBytes);
  const std::uint64_t there = ends.acceptor.windows().add(far.bytes());
  MappedWindow mapped;
  try {
    mapped = ends.connector.windows().map(there, kWindowBytes);
  } catch (const Error& error) {
    ASSERT_EQ(error.code().value(), ENOTSUP);
    GTEST_SKIP() << "a put fabric";
  }
  ends.connector.close();
  ends.acceptor.close();
  mapped.bytes()[5] = std::byte{9};
  EXPECT_EQ(far.bytes()[5], std::byte{9});
}

TEST_P(StreamWindows, EndWithThePeer) {
  Streams ends = pair();
  const Pages far(kWindowBytes);
  const std::uint64_t there = ends.acceptor.windows().add(far.bytes());
  ends.acceptor.close();
  const auto bytes = pattern_.bytes(100);
  EXPECT_EQ(ends.connector.windows().write_to(std::span(bytes), there).error, ECONNRESET);
}

WHERRY_ON_EVERY_FABRIC(StreamWindows);

}  // namespace
}  // namespace wherry::conformance
