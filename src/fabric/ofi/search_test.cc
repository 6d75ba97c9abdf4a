// SPDX-License-Identifier: Apache-2.0
// A connector's search among silent ports, which accept its connection and send nothing: other programs, stopped
// processes.
#include "fabric/ofi/search.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/ofi/hello.hpp"
#include "fabric/ofi/rendezvous_fixture.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr std::uint16_t kNode = 5;
constexpr std::uint16_t kPort = 80;

class SearchTest : public testing::Test {
 protected:
  /// Listens on the first free port of the order, and takes connections only when a test does.
  void add_silent() { silent_.push_back(listen_on_first_free(order_)); }
  RendezvousConnector connector(const Deadline& until) const {
    return {settings_, "127.0.0.1", kNode, kPort, test_introduction("c"), until};
  }
  /// Those of the connector's connections to silent ports that it has open.
  std::size_t open_connections() {
    for (const UniqueFd& listening : silent_) {
      for (UniqueFd socket(take(listening)); socket.valid(); socket = take(listening))
        taken_.push_back(std::move(socket));
    }
    return static_cast<std::size_t>(std::ranges::count_if(taken_, is_open));
  }

  const Settings settings_ = test_settings();
  const PortOrder order_{settings_.ports, job_number(settings_.job), kNode, kPort};
  std::vector<UniqueFd> silent_;
  std::vector<UniqueFd> taken_;

 private:
  static bool is_open(const UniqueFd& socket) {
    std::array<std::byte, sizeof(layout::Question)> question{};
    ssize_t got = 0;
    do {
      got = ::recv(socket.get(), question.data(), question.size(), MSG_DONTWAIT);
    } while (got > 0);
    return got < 0 && errno == EAGAIN;
  }
  static UniqueFd take(const UniqueFd& listening) {
    return UniqueFd(::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
};

TEST_F(SearchTest, PortsThatSayNothingAreAskedAtTheSameTime) {
  constexpr std::size_t kSilent = 6;
  for (std::size_t i = 0; i < kSilent; ++i) add_silent();
  RendezvousListener listener(settings_, kNode, kPort);
  RendezvousConnector connector = this->connector(std::nullopt);
  std::optional<Meeting> none;
  drive(nullptr, &connector, &none, [&] { return open_connections() == kSilent; });
  EXPECT_TRUE(meet(listener, connector).connector);
  EXPECT_EQ(open_connections(), 0U);
}

/// A hundred of them, one after the other, would take longer than a test may.
TEST_F(SearchTest, EndsInItsTimeWhereEveryPortSaysNothing) {
  Settings settings = settings_;
  settings.host_timeout = std::chrono::milliseconds(20);
  try {
    for (;;) add_silent();
  } catch (const Error& error) {
    ASSERT_EQ(error.code().value(), EADDRINUSE);
  }
  RendezvousConnector connector(settings, "127.0.0.1", kNode, kPort, test_introduction("c"), std::nullopt);
  const Error error = failure_of(nullptr, connector);
  EXPECT_EQ(error.code().value(), ECONNREFUSED);
  EXPECT_NE(std::string(error.what()).find("took the connection and said nothing"), std::string::npos) << error.what();
}

/// The service drives the search. Its other connections have their turn meanwhile.
TEST_F(SearchTest, OneCallAsksOnlySomeOfThePortsThatRefuseAtOnce) {
  RendezvousConnector connector = this->connector(std::nullopt);
  std::size_t calls = 0;
  std::optional<Meeting> none;
  try {
    drive(nullptr, &connector, &none, [&] { return ++calls, false; });
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ECONNREFUSED);
  }
  EXPECT_GT(calls, 2U);
}

TEST_F(SearchTest, ADeadlineEndsItWhilePortsAreSilent) {
  for (int i = 0; i < 3; ++i) add_silent();
  Settings settings = settings_;
  settings.host_timeout = std::chrono::hours(1);
  RendezvousConnector connector(settings, "127.0.0.1", kNode, kPort, test_introduction("c"),
                                Timer::Clock::now() + std::chrono::milliseconds(100));
  EXPECT_NE(std::string(failure_of(nullptr, connector).what()).find("waited"), std::string::npos);
}

/// While the first port, which has another key, is heard, the second is not.
TEST_F(SearchTest, APortThatWasNotWaitedForIsAskedAgain) {
  add_silent();
  RendezvousListener listener(settings_, kNode, kPort);
  RendezvousConnector connector = this->connector(seconds_from_now(1000));
  std::optional<Meeting> met;
  drive(nullptr, &connector, &met, [&] { return open_connections() == 1; });
  // The listener's kernel takes a connection, too; the listener is not driven.
  pollfd called{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
  drive(nullptr, &connector, &met, [&] { return ::poll(&called, 1, 0) == 1; });
  const layout::Answer yes{.version = layout::kRendezvousVersion,
                           .magic = layout::kRendezvousMagic,
                           .verdict = static_cast<std::uint32_t>(layout::Verdict::yes),
                           .zero = 0,
                           .nonce = {}};
  const UniqueFd first = std::move(taken_.front());
  ASSERT_TRUE(send_message(first.get(), yes));
  drive(nullptr, &connector, &met, [&] { return !connector.waits_for_listener(); });
  ASSERT_TRUE(send_message(first.get(), *make_hello(layout::Kind::receipt, job_number(settings_.job), {})));
  drive(nullptr, &connector, &met, [&] { return connector.waits_for_listener(); });
  EXPECT_TRUE(meet(listener, connector).connector);
}

}  // namespace
}  // namespace wherry::fabric::ofi
