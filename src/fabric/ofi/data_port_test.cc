// SPDX-License-Identifier: Apache-2.0
// Strangers at the port where libfabric waits for data endpoints. Uses the real library over the loopback interface.
#include "fabric/ofi/data_port.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/open_descriptors.hpp"
#include "base/unique_fd.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/library.hpp"
#include "fabric/ofi/rendezvous_fixture.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr int kStrangers = 200;

SocketAddress loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

/// The beginning of a connection request of libfabric's tcp provider (ofi_ctrl_hdr): version, type, and the number of
/// bytes of user data, which never come.
constexpr std::array<unsigned char, 32> kHalfRequest{3, 0, 0, 32};

class DataPortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0) GTEST_SKIP() << "libfabric has no sanitizer";
    domain_ = std::make_unique<Domain>();
    port_ = domain_->listen(loopback(0), test_settings().ports);
  }

  void call(std::span<const unsigned char> said) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger reset{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
    ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    const SocketAddress to = loopback(port_);
    ASSERT_EQ(::connect(socket.get(), to.get(), to.length()), 0);
    ASSERT_EQ(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
    strangers_.push_back(std::move(socket));
  }

  /// Connects a peer, as far as its knock, and returns how many descriptors this process then has more.
  std::size_t descriptors_of_a_peer() {
    const std::size_t before = open_descriptors();
    Token token{};
    token.fill(std::byte{7});
    const Endpoint peer(*domain_, loopback(0), loopback(port_), token, nullptr);
    for (;;) {
      auto news = domain_->read();
      if (news && news->kind == Domain::News::Kind::knock) {
        EXPECT_EQ(news->knock->token(), token);
        return open_descriptors() - before;
      }
      pollfd polled{.fd = domain_->descriptor(), .events = POLLIN, .revents = 0};
      if (!news && domain_->may_sleep()) {
        EXPECT_EQ(::poll(&polled, 1, -1), 1);
      }
    }
  }

  std::unique_ptr<Domain> domain_;
  std::uint16_t port_ = 0;
  std::vector<UniqueFd> strangers_;
};

TEST_F(DataPortTest, AStrangerThatSaysNothingTakesNoDescriptor) {
  (void)descriptors_of_a_peer();
  const std::size_t alone = descriptors_of_a_peer();
  for (int i = 0; i < kStrangers; ++i) call({});
  EXPECT_EQ(descriptors_of_a_peer(), alone);
}

TEST_F(DataPortTest, AStrangerThatStopsInAMessageHoldsUpNoPeer) {
  for (int i = 0; i < kStrangers; ++i) call(kHalfRequest);
  (void)descriptors_of_a_peer();
}

TEST_F(DataPortTest, WhatIsNoRequestIsDropped) {
  (void)descriptors_of_a_peer();
  const std::size_t alone = descriptors_of_a_peer();
  const auto* const http = reinterpret_cast<const unsigned char*>("GET / HTTP/1.1\r\nHost: wherry.test\r\n\r\n");
  for (int i = 0; i < kStrangers; ++i) call({http, i % 2 == 0 ? 37U : 1U});
  // They come before the peer, and those that are dropped have no descriptor any more.
  EXPECT_EQ(descriptors_of_a_peer(), alone);
}

TEST_F(DataPortTest, AStrangerThatStopsInAMessageIsEnded) {
  (void)descriptors_of_a_peer();
  const std::size_t alone = open_descriptors();
  for (int i = 0; i < kStrangers; ++i) call(kHalfRequest);
  (void)descriptors_of_a_peer();  // all of them come before this peer
  EXPECT_TRUE(domain_->end_strangers({}));
  EXPECT_FALSE(domain_->end_strangers({}));
  for (const UniqueFd& stranger : strangers_) {
    std::array<char, 1> byte{};
    EXPECT_LE(::recv(stranger.get(), byte.data(), byte.size(), 0), 0);
  }
  strangers_.clear();
  // Version 2.5.1 keeps the descriptors of such connections, even when the stranger has closed them.
  const bool closes = FI_MAJOR(Library::instance().version()) < 2;
  while (closes && open_descriptors() != alone) (void)descriptors_of_a_peer();
}

TEST_F(DataPortTest, IsFoundOnlyWhereThisProcessListens) {
  EXPECT_TRUE(guard_data_port(loopback(port_)));
  EXPECT_FALSE(guard_data_port(loopback(1)));
}

}  // namespace
}  // namespace wherry::fabric::ofi
