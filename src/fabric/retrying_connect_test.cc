// SPDX-License-Identifier: Apache-2.0
// Attempts that take long, and those that find no listener only after they have started.
#include "fabric/retrying_connect.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include <wherry/error.hpp>

#include "fabric/event_bell.hpp"

namespace wherry::fabric {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

const Address kAddress{.fabric = "tested", .node = 0, .port = 80};

Error refusal() { return {ECONNREFUSED, "connect", kAddress.to_string(), "nobody listens there"}; }

/// An attempt that has been refused at another host.
class Refused final : public Connecting {
 public:
  explicit Refused(bool has_found_listener) : has_found_listener_(has_found_listener) { answer_.notify(); }
  std::unique_ptr<Connection> try_finish() override { throw refusal(); }
  [[nodiscard]] int descriptor() const override { return answer_.descriptor(); }
  [[nodiscard]] bool waits_for_listener() const override { return !has_found_listener_; }

 private:
  const bool has_found_listener_;
  EventBell answer_;
};

class TestedFabric final : public Fabric {
 public:
  [[nodiscard]] std::string_view name() const override { return "tested"; }
  std::unique_ptr<Listener> listen(const Address&) override { throw refusal(); }
  std::unique_ptr<Connecting> connect(const Address&, const Offer&) override {
    ++attempts;
    if (until) {
      std::this_thread::sleep_until(*until);
      throw refusal();
    }
    return std::make_unique<Refused>(attempts >= finds_listener_at);
  }

  Deadline until;                                           ///< set: an attempt is refused at that time, and not before
  int finds_listener_at = std::numeric_limits<int>::max();  ///< the attempt that is the first to find one
  int attempts = 0;
};

class RetryingConnectTest : public testing::Test {
 protected:
  std::string text(const Deadline& until) {
    try {
      const auto attempt = start_connect(fabric_, kAddress, {}, {.nobody_listens = until, .queue_full = until});
      (void)finish(*attempt, kAddress, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ECONNREFUSED);
      return error.advice();
    }
    return "connected";
  }

  TestedFabric fabric_;
};

TEST_F(RetryingConnectTest, OneAttemptThatTakesAllTheTimeSaysHowLong) {
  fabric_.until = steady_clock::now() + 20ms;
  EXPECT_TRUE(text(fabric_.until).starts_with("nobody listens there; waited "));
  EXPECT_EQ(fabric_.attempts, 1);
}

TEST_F(RetryingConnectTest, TheOnlyAttemptThatWasWantedDoesNotSayIt) {
  fabric_.until = steady_clock::now() + 20ms;
  EXPECT_EQ(text(steady_clock::now() - 1ms), "nobody listens there");
  fabric_.until.reset();
  EXPECT_EQ(text(steady_clock::now() - 1ms), "nobody listens there");
  EXPECT_EQ(fabric_.attempts, 2);
}

TEST_F(RetryingConnectTest, AnAttemptThatFoundNoListenerIsRepeated) {
  fabric_.finds_listener_at = 4;
  EXPECT_TRUE(text(steady_clock::now() + 1h).starts_with("nobody listens there"));
  EXPECT_EQ(fabric_.attempts, 4);
}

TEST_F(RetryingConnectTest, ARefusalByAListenerIsNot) {
  fabric_.finds_listener_at = 1;
  EXPECT_EQ(text({}), "nobody listens there");
  EXPECT_EQ(fabric_.attempts, 1);
}

}  // namespace
}  // namespace wherry::fabric
