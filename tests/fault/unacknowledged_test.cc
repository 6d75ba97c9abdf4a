// SPDX-License-Identifier: Apache-2.0
// Closing where the peer's fabric acknowledges nothing, as where its process is stopped.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <wherry/framed.hpp>
#include <wherry/stream.hpp>

#include "base/scoped_environment.hpp"

namespace wherry {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::hours kForever{1};

class Unacknowledged : public ::testing::TestWithParam<const char*> {
 protected:
  Unacknowledged() { meet({}); }

  void meet(const StreamOptions& options) {
    Listener listener = listen(std::string("wherry+") + GetParam() + "://*:*", options);
    Connecting connecting = start_connect(listener.local().to_string(), options);
    acceptor_ = listener.accept();
    connector_ = connecting.finish();
  }

  const ScopedEnvironment faults_{"WHERRY_FAULTS", "unacknowledged=1"};
  Stream acceptor_, connector_;
};

TEST_P(Unacknowledged, ACloseWithALimitReportsItAndFreesTheStream) {
  ASSERT_TRUE(connector_.send(std::as_bytes(std::span("hello"))).ok());
  const auto limit = std::chrono::steady_clock::now() + 30ms;
  const Result closed = connector_.close(30ms);
  EXPECT_EQ(closed.error, ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now(), limit);
  EXPECT_FALSE(connector_.is_open());
  EXPECT_EQ(connector_.close(30ms).error, EBADF);
  std::vector<std::byte> got(6);
  EXPECT_TRUE(acceptor_.receive_all(got).ok());
  EXPECT_EQ(std::memcmp(got.data(), "hello", 6), 0);
  EXPECT_TRUE(acceptor_.close(kForever).ok()) << "it had sent nothing";
}

TEST_P(Unacknowledged, AFramedStreamReportsItToo) {
  FramedStream framed(std::move(connector_));
  ASSERT_TRUE(framed.send(std::as_bytes(std::span("hello"))).ok());
  EXPECT_EQ(framed.close(1ms).error, ETIMEDOUT);
  EXPECT_FALSE(framed.is_open());
  EXPECT_EQ(framed.close(1ms).error, EBADF);
}

TEST_P(Unacknowledged, ACloseWithWindowsSaysThatBytesMayBeLost) {
  (void)connector_.close(1ms);
  meet({.windows = true});
  alignas(4096) std::array<std::byte, 4096> memory{};
  if (connector_.windows().can_map()) (void)connector_.windows().add(memory);
  EXPECT_EQ(connector_.close(1ms).error, ETIMEDOUT);
}

INSTANTIATE_TEST_SUITE_P(, Unacknowledged, ::testing::Values("faulty+inproc", "faulty+inproc-put", "faulty+shm"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '+' || c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace wherry
