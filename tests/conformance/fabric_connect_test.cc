// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

class FabricConnect : public FabricTest {
 protected:
  int connect_error(const Address& address, const Offer& offer = {.segment_bytes = kPage}) {
    return error_of([&] { finish(*tested().connect(address, offer)); });
  }
};

TEST_P(FabricConnect, AListenerKnowsTheAddressItBound) {
  const auto listener = listen();
  EXPECT_EQ(listener->local().node, own_node());
  ASSERT_TRUE(listener->local().port.has_value());
  EXPECT_NE(*listener->local().port, 0);
}

TEST_P(FabricConnect, WildcardPortsDiffer) {
  std::vector<std::unique_ptr<fabric::Listener>> listeners;
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 50; ++i) ports.insert(*listeners.emplace_back(listen())->local().port);
  EXPECT_EQ(ports.size(), 50U);
}

TEST_P(FabricConnect, APortIsListenedOnOnce) {
  const auto listener = listen();
  EXPECT_EQ(error_of([&] { tested().listen(listener->local()); }), EADDRINUSE);
  Address own_by_wildcard = listener->local();
  own_by_wildcard.node.reset();
  EXPECT_EQ(error_of([&] { tested().listen(own_by_wildcard); }), EADDRINUSE);
}

TEST_P(FabricConnect, APortIsFreeAgainAfterItsListener) {
  auto listener = listen();
  const Address address = listener->local();
  for (int i = 0; i < 20; ++i) {
    listener.reset();
    listener = tested().listen(address);
  }
  EXPECT_EQ(listener->local(), address);
}

TEST_P(FabricConnect, AnotherNodesAddressCannotBeListenedOn) {
  Address elsewhere;
  elsewhere.node = static_cast<std::uint16_t>(own_node() + 1);
  EXPECT_EQ(error_of([&] { tested().listen(elsewhere); }), EADDRNOTAVAIL);
}

TEST_P(FabricConnect, NobodyListensThereIsRefused) {
  const Address address = listen()->local();
  EXPECT_EQ(connect_error(address), ECONNREFUSED);
  if (GetParam().refuses_at_once) {
    EXPECT_EQ(error_of([&] { tested().connect(address, {.segment_bytes = kPage}); }), ECONNREFUSED);
    return;
  }
  const auto connecting = tested().connect(address, {.segment_bytes = kPage});
  EXPECT_EQ(error_of([&] { finish(*connecting); }), ECONNREFUSED);
  EXPECT_TRUE(connecting->waits_for_listener());
  EXPECT_EQ(error_of([&] { finish(*connecting); }), ECONNREFUSED);
}

TEST_P(FabricConnect, ATargetHasANodeAndAPort) {
  Address open = listen()->local();
  open.port.reset();
  EXPECT_EQ(connect_error(open), EINVAL);
  open = listen()->local();
  open.node.reset();
  EXPECT_EQ(connect_error(open), EINVAL);
}

TEST_P(FabricConnect, AnOfferIsCheckedOnBothSides) {
  const auto listener = listen();
  const CallersPages pages(2 * kPage);
  const std::vector<Offer> wrong{{.segment_bytes = 0},
                                 {.segment_bytes = kPage + 1},
                                 {.segment_bytes = fabric::kMaxSegmentBytes + kPage},
                                 {.segment_bytes = kPage, .memory = pages.bytes().data() + 64}};
  for (const auto& offer : wrong) {
    EXPECT_EQ(connect_error(listener->local(), offer), EINVAL);
    EXPECT_EQ(error_of([&] { listener->try_accept(offer); }), EINVAL);
  }
}

TEST_P(FabricConnect, NobodyWaitsIsNull) {
  const auto listener = listen();
  EXPECT_EQ(listener->try_accept({.segment_bytes = kPage}), nullptr);
  EXPECT_FALSE(readable(listener->descriptor(), 0ms));
}

TEST_P(FabricConnect, ItCompletesWhenAcceptedAndDescriptorsTell) {
  const auto listener = listen();
  const auto connecting = tested().connect(listener->local(), {.segment_bytes = kPage});
  EXPECT_EQ(connecting->try_finish(), nullptr);
  EXPECT_FALSE(readable(connecting->descriptor(), 0ms));
  EXPECT_TRUE(readable(listener->descriptor()));
  const auto accepted = accept(*listener, {.segment_bytes = kPage});
  EXPECT_TRUE(readable(connecting->descriptor()));
  EXPECT_NE(finish(*connecting), nullptr);
  EXPECT_FALSE(readable(listener->descriptor(), 0ms));
}

TEST_P(FabricConnect, ClosingAListenerRefusesWhoWaits) {
  auto listener = listen();
  const auto first = tested().connect(listener->local(), {.segment_bytes = kPage});
  const auto second = tested().connect(listener->local(), {.segment_bytes = kPage});
  listener.reset();
  for (const auto& connecting : {first.get(), second.get()}) {
    EXPECT_TRUE(readable(connecting->descriptor()));
    const int error = error_of([&] { finish(*connecting); });
    EXPECT_TRUE(error == ECONNREFUSED || error == ECONNRESET) << error;
  }
}

TEST_P(FabricConnect, WhoGaveUpIsDroppedOrSeenToBeGone) {
  const auto listener = listen();
  tested().connect(listener->local(), {.segment_bytes = kPage}).reset();
  if (const auto accepted = listener->try_accept({.segment_bytes = kPage})) {
    EXPECT_EQ(wait_for_end(*accepted), Wake::gone);
  }
}

TEST_P(FabricConnect, AnAcceptedConnectionGivenUpUnfinishedIsGone) {
  const auto listener = listen();
  auto connecting = tested().connect(listener->local(), {.segment_bytes = kPage});
  const auto accepted = accept(*listener, {.segment_bytes = kPage});
  connecting.reset();
  EXPECT_EQ(wait_for_end(*accepted), Wake::gone);
}

TEST_P(FabricConnect, ConnectorsAreAcceptedInTheirOrder) {
  const auto listener = listen();
  std::vector<std::unique_ptr<fabric::Connecting>> connecting;
  for (std::uint8_t i = 0; i < 20; ++i) {
    connecting.push_back(tested().connect(listener->local(), {.segment_bytes = kPage, .greeting = greeting_of(i)}));
    while (connecting.back()->waits_for_listener()) std::this_thread::yield();
  }
  for (std::uint8_t i = 0; i < 20; ++i) {
    const auto accepted = accept(*listener, {.segment_bytes = kPage, .greeting = greeting_of(100 + i)});
    EXPECT_EQ(accepted->peer_greeting(), greeting_of(i));
    EXPECT_EQ(finish(*connecting[i])->peer_greeting(), greeting_of(100 + i));
  }
}

TEST_P(FabricConnect, EachSideKnowsWhoTheOtherIs) {
  const auto listener = listen();
  const auto connecting = tested().connect(listener->local(), {.segment_bytes = kPage});
  const auto acceptor = accept(*listener, {.segment_bytes = kPage});
  const auto connector = finish(*connecting);
  for (const auto* end : {acceptor.get(), connector.get()}) {
    EXPECT_EQ(end->peer().vouched(), GetParam().vouches);
    EXPECT_EQ(end->peer().pid, GetParam().vouches ? ::getpid() : 0);
    EXPECT_EQ(end->peer().uid, GetParam().vouches ? ::geteuid() : UINT32_MAX);
    EXPECT_EQ(end->peer().gid, GetParam().vouches ? ::getegid() : UINT32_MAX);
    EXPECT_EQ(end->peer().address.node, own_node());
  }
  EXPECT_EQ(connector->peer().address.port, listener->local().port);
}

TEST_P(FabricConnect, AnEstablishedConnectionOutlivesItsListener) {
  const Ends ends = connect_pair();
  EXPECT_TRUE(ends.connector->signal(0, 7, Bell::data));
  EXPECT_EQ(await(*ends.acceptor, 0, 7, Bell::data), Wake::rung);
}

TEST_P(FabricConnect, ManyThreadsConnectAtOnce) {
  constexpr int kThreads = 4, kEach = 25;
  const auto listener = listen();
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        if (finish(*tested().connect(listener->local(), {.segment_bytes = kPage}))) ++finished;
      }
    });
  }
  for (int i = 0; i < kThreads * kEach; ++i) EXPECT_NE(accept(*listener, {.segment_bytes = kPage}), nullptr);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(finished, kThreads * kEach);
}

/// While it lives this process can open no further descriptor.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::dup(STDIN_FILENO));
    const rlimit full{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &full);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(FabricConnect, WithoutDescriptorsItSaysSoAndNothingIsBroken) {
  if (WHERRY_ADDRESS_SANITIZER != 0)
    GTEST_SKIP() << "the sanitizers need descriptors of their own when something is thrown";
  const auto listener = listen();
  const auto first = tested().connect(listener->local(), {.segment_bytes = kPage});
  EXPECT_TRUE(readable(listener->descriptor()));
  {
    const NoMoreDescriptors full;
    EXPECT_EQ(error_of([&] { (void)listen(); }), EMFILE);
    EXPECT_EQ(error_of([&] { tested().connect(listener->local(), {.segment_bytes = kPage}); }), EMFILE);
    EXPECT_EQ(error_of([&] { listener->try_accept({.segment_bytes = kPage}); }), EMFILE);
  }
  const auto second = tested().connect(listener->local(), {.segment_bytes = kPage});
  EXPECT_NE(accept(*listener, {.segment_bytes = kPage}), nullptr);
}

WHERRY_ON_EVERY_FABRIC(FabricConnect);

}  // namespace
}  // namespace wherry::conformance
