// SPDX-License-Identifier: Apache-2.0
// Connections that a listener does not accept: those of other users' processes, and those without a request.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/open_descriptors.hpp"
#include "base/scoped_environment.hpp"
#include "fabric/fabric.hpp"
#include "fabric/shm/socket_names.hpp"
#include "fabric/shm/stranger_budget.hpp"
#include "tests/common/no_descriptors.hpp"
#include "tests/common/other_user.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::fabric::shm {
namespace {

using namespace std::chrono_literals;

const Offer kOffer{.segment_bytes = 4096};

/// A connector of this process's user, or of another user, that sends nothing.
UniqueFd knock(const SocketName& name) {
  UniqueFd socket = make_socket("test", "");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) return {};
  return socket;
}

class Strangers : public ::testing::Test {
 protected:
  Strangers() : listener_(find("shm").listen(Address::parse("wherry://*:*"))) {}

  void SetUp() override {
    if (!may_be_another_user()) GTEST_SKIP() << "only root can be another user";
  }

  [[nodiscard]] SocketName name() const { return socket_name(*listener_->local().node, *listener_->local().port); }
  /// `count` connectors of another user, which have gone again and stand in the kernel's queue.
  void knock_as_stranger(int count) const {
    const auto knocks = [name = name(), count] {
      for (int i = 0; i < count; ++i) {
        if (!knock(name).valid()) return false;
      }
      return true;
    };
    ASSERT_EQ(as_other_user(knocks).wait(), 0);
  }

  std::unique_ptr<Listener> listener_;
};

TEST_F(Strangers, CostOneCallABoundedAmountOfWork) {
  knock_as_stranger(1000);
  EXPECT_EQ(listener_->try_accept(kOffer), nullptr);
  EXPECT_TRUE(becomes_readable(listener_->descriptor(), 0ms)) << "one call has dropped them all";
  int calls = 1;
  for (; becomes_readable(listener_->descriptor(), 0ms); ++calls) EXPECT_EQ(listener_->try_accept(kOffer), nullptr);
  EXPECT_LT(calls, 100);
}

TEST_F(Strangers, ThatComeAndGoWithoutAPauseDoNotHoldUpATimeLimitOrTheOwner) {
  wherry::Listener listener = listen("wherry+shm://*:*");
  const SocketName name = socket_name(*listener.local().node, *listener.local().port);
  const SharedValue<std::atomic<bool>> knocking;
  const Child stranger = as_other_user([&] {
    while (true) {
      knock(name);
      *knocking = true;
    }
    return true;
  });
  while (!*knocking) std::this_thread::yield();
  EXPECT_THROW((void)listener.accept(20ms), Error);
  const Child owner([where = listener.local().to_string()] { return connect(where, {}, 3600s).is_open(); });
  EXPECT_TRUE(listener.accept(3600s).is_open());
}

TEST_F(Strangers, ThatFillTheKernelsQueueDoNotShutOutAnOwnerWhoWaits) {
  wherry::Listener listener = listen("wherry+shm://*:*");
  const SocketName name = socket_name(*listener.local().node, *listener.local().port);
  const SharedValue<std::atomic<int>> errors;
  const auto fill = [&] {
    while (knock(name).valid()) continue;
    *errors = errno;
    return true;
  };
  ASSERT_EQ(as_other_user(fill).wait(), 0);
  ASSERT_EQ(*errors, EAGAIN) << "the queue is full";
  try {
    (void)start_connect(listener.local().to_string(), {}, 0s);
    ADD_FAILURE() << "it was not to wait for its turn";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ECONNREFUSED);
    EXPECT_EQ(error.advice(), "too many connectors wait there already; try again, or accept faster");
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)connect(listener.local().to_string(), {}, 50ms), Error);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms) << "it did not wait for its turn";
  const Child owner([where = listener.local().to_string()] { return connect(where, {}, 3600s).is_open(); });
  EXPECT_TRUE(listener.accept(3600s).is_open());
}

TEST_F(Strangers, WhoStormLoseTheirPlacesInTheKernelsQueueUntilTheStormIsOver) {
  const SharedValue<std::atomic<int>> places;
  const auto fill = [&, name = name()] {
    for (*places = 0; knock(name).valid();) ++*places;
    return true;
  };
  const auto drain = [&] {
    do EXPECT_EQ(listener_->try_accept(kOffer), nullptr);
    while (becomes_readable(listener_->descriptor(), 0ms));
  };
  for (int strangers = 0; strangers < 2 * StrangerBudget::kAtOnce; strangers += *places) {
    ASSERT_EQ(as_other_user(fill).wait(), 0);
    drain();
  }
  ASSERT_EQ(as_other_user(fill).wait(), 0);
  EXPECT_LE(*places, StrangerBudget::kShortQueue + 1);
  constexpr std::size_t kOwners = 2 * StrangerBudget::kShortQueue;
  std::size_t owners = 0;
  while (owners < kOwners) {
    drain();
    std::vector<UniqueFd> silent;
    do silent.push_back(knock(name()));
    while (silent.back().valid() && silent.size() < kOwners);
    owners = silent.back().valid() ? silent.size() : 0;
  }
}

TEST_F(Strangers, AreDroppedAlthoughAsManySilentConnectorsWaitAsMay) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64 + open_descriptors(), .rlim_max = before.rlim_max};
  std::vector<UniqueFd> silent;
  for (rlim_t i = 0; i < few.rlim_cur / 4; ++i) silent.push_back(knock(name()));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(listener_->try_accept(kOffer), nullptr);
  knock_as_stranger(100);
  const auto connecting = find("shm").connect(listener_->local(), kOffer);
  std::unique_ptr<Connection> connection;
  for (int i = 0; i < 100 && connection == nullptr; ++i) connection = listener_->try_accept(kOffer);
  EXPECT_NE(connection, nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// As many as there are: they leave this process three quarters of its descriptors.
TEST(SilentConnectors, HoldAQuarterOfTheDescriptorsAtMost) {
  constexpr rlim_t kFiles = 256;
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  const SocketName name = socket_name(*listener->local().node, *listener->local().port);
  const SharedValue<std::atomic<bool>> knocked;
  const Child connector([&] {
    std::vector<UniqueFd> silent;
    for (rlim_t i = 0; i < 2 * kFiles; ++i) silent.push_back(knock(name));
    *knocked = true;
    while (true) ::pause();
    return true;
  });
  while (!*knocked) std::this_thread::yield();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = kFiles, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::size_t own = open_descriptors();
  for (int i = 0; i < 100; ++i) EXPECT_NO_THROW(EXPECT_EQ(listener->try_accept(kOffer), nullptr));
  EXPECT_LE(open_descriptors() - own, kFiles / 4);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// Connectors of this very process hold the descriptors that are missing to accept one of them.
TEST(TooFewDescriptors, LetInWhomTheyAreEnoughForAndRefuseTheOthersAtOnce) {
  if (WHERRY_ADDRESS_SANITIZER != 0)
    GTEST_SKIP() << "the sanitizers need descriptors of their own when something is thrown";
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64 + open_descriptors(), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<Connecting>> waiting;
  EXPECT_THROW(while (true) waiting.push_back(find("shm").connect(listener->local(), kOffer)), Error);
  EXPECT_GT(waiting.size(), 10U);
  // What was too little to connect once more could be enough to accept.
  std::vector<UniqueFd> rest;
  do rest.emplace_back(::dup(listener->descriptor()));
  while (rest.back().valid());
  for (int i = 0; i < 10; ++i) EXPECT_THROW((void)listener->try_accept(kOffer), Error) << i;
  for (const auto& connecting : waiting) {
    EXPECT_TRUE(becomes_readable(connecting->descriptor(), 0ms));
    EXPECT_THROW((void)connecting->try_finish(), Error);
  }
  waiting.clear();
  while (becomes_readable(listener->descriptor(), 0ms)) EXPECT_EQ(listener->try_accept(kOffer), nullptr);
  std::vector<std::unique_ptr<Connection>> ends;
  for (int i = 0; i < 5; ++i) {
    const auto connecting = find("shm").connect(listener->local(), kOffer);
    ends.push_back(listener->try_accept(kOffer));
    ends.push_back(connecting->try_finish());
  }
  for (const auto& end : ends) EXPECT_NE(end, nullptr);
  ends.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// They may hold what is missing. A request that waits, and its companion, have no such time.
TEST(SilentConnectors, AreDroppedAlsoWhileARequestWaitsForDescriptors) {
  if (!NoDescriptors::kPossible) GTEST_SKIP() << "AddressSanitizer needs descriptors";
  const ScopedEnvironment timeout("WHERRY_CONNECT_TIMEOUT", "50");
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  const UniqueFd silent = knock(socket_name(*listener->local().node, *listener->local().port));
  Offer offer = kOffer;
  offer.departed = true;
  EXPECT_EQ(listener->try_accept(offer), nullptr);
  const auto connecting = find("shm").connect(listener->local(), kOffer);
  {
    const NoDescriptors few(2);
    // It is told by the end of its socket.
    while (!becomes_readable(silent.get(), 1ms)) EXPECT_THROW((void)listener->try_accept(offer), Error);
  }
  EXPECT_NE(listener->try_accept(offer), nullptr);
}

// Those of a mailbox, whose requests may bring messages, keep their places, and the listener does not look without end.
TEST(Companions, ThatTakeAllPlacesKeepThemUntilTheirTimeIsOver) {
  const ScopedEnvironment timeout("WHERRY_CONNECT_TIMEOUT", "50");
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  const SocketName name = socket_name(*listener->local().node, *listener->local().port);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Offer offer = kOffer;
  offer.departed = true;
  std::vector<UniqueFd> companions;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    companions.push_back(knock(name));
    ASSERT_EQ(send_companion(companions.back().get(), i), 0);
  }
  const rlimit few{.rlim_cur = 128 + open_descriptors(), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto accept = [&]() -> std::unique_ptr<Connection> {
    try {
      return listener->try_accept(offer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ENOBUFS);
      return nullptr;
    }
  };
  EXPECT_EQ(accept(), nullptr);
  EXPECT_THROW((void)listener->try_accept(offer), Error) << "and the caller rests";
  EXPECT_FALSE(becomes_readable(companions.front().get(), 0ms));
  const auto connecting = find("shm").connect(listener->local(), kOffer);
  std::unique_ptr<Connection> connection;
  while (connection == nullptr) connection = accept();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(SilentConnectors, AreDroppedWhenTheirTimeIsOver) {
  const ScopedEnvironment timeout("WHERRY_CONNECT_TIMEOUT", "0");
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  const UniqueFd silent = knock(socket_name(*listener->local().node, *listener->local().port));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(listener->try_accept(kOffer), nullptr);
  EXPECT_TRUE(becomes_readable(silent.get(), 0ms)) << "it is told by the end of its socket";
}

}  // namespace
}  // namespace wherry::fabric::shm
