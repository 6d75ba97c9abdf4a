// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/rendezvous.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include <wherry/error.hpp>

#include "base/open_descriptors.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"
#include "fabric/ofi/meeting_socket.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/rendezvous_fixture.hpp"

namespace wherry::fabric::ofi {
namespace {

using testing::HasSubstr;

constexpr const char* kLocal = "127.0.0.1";

RendezvousConnector connector_to(const Settings& settings, std::uint16_t port, const Deadline& until = std::nullopt,
                                 const std::string& host = kLocal) {
  return {settings, host, 5, port, test_introduction("connector"), until};
}

TEST(Rendezvous, BothLearnOfEachOther) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  RendezvousConnector connector = connector_to(settings, 80);
  BothEnds ends = meet(listener, connector);
  ASSERT_TRUE(ends.listener && ends.connector);
  EXPECT_EQ(ends.listener->peer.greeting, test_introduction("connector").greeting);
  EXPECT_EQ(ends.listener->peer.data, test_introduction("connector").data);
  EXPECT_EQ(ends.listener->peer.node, 3);
  EXPECT_EQ(ends.connector->peer.greeting, test_introduction("listener").greeting);
  EXPECT_EQ(ends.connector->peer.segment_bytes, 4096U);
  EXPECT_EQ(ends.listener->token, ends.connector->token);
  EXPECT_EQ(ends.listener->local.to_string(), ends.connector->remote.to_string());
  EXPECT_EQ(ends.listener->remote.to_string(), ends.connector->local.to_string());
  EXPECT_EQ(ends.listener->local.port(), listener.tcp_port());
  EXPECT_EQ(ends.listener->local.family(), AF_INET);
  EXPECT_EQ(listener.visitor(), nullptr);
  EXPECT_FALSE(connector.waits_for_listener());
}

TEST(Rendezvous, EachMeetingHasATokenOfItsOwn) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  RendezvousConnector first = connector_to(settings, 80);
  const BothEnds one = meet(listener, first);
  RendezvousConnector second = connector_to(settings, 80);
  const BothEnds two = meet(listener, second);
  EXPECT_NE(one.connector->token, two.connector->token);
}

TEST(Rendezvous, GoesOverIpv6) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  RendezvousConnector connector = connector_to(settings, 80, std::nullopt, "::1");
  BothEnds ends;
  try {
    ends = meet(listener, connector);
  } catch (const Error& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  EXPECT_EQ(ends.connector->local.family(), AF_INET6);
  EXPECT_THAT(ends.connector->remote.to_string(), HasSubstr("[::1]:"));
}

TEST(Rendezvous, TheSocketShowsThePeersEnd) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  RendezvousConnector connector = connector_to(settings, 80);
  BothEnds ends = meet(listener, connector);
  pollfd polled{.fd = ends.connector->socket.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0);
  ends.listener.reset();
  ASSERT_EQ(::poll(&polled, 1, -1), 1);
  char byte = 0;
  EXPECT_LE(::recv(polled.fd, &byte, 1, 0), 0);
}

TEST(Rendezvous, AListenerThatComesLaterIsFound) {
  const Settings settings = test_settings();
  RendezvousConnector connector = connector_to(settings, 80, seconds_from_now(1000));
  std::optional<Meeting> meeting;
  int calls = 0;
  drive(nullptr, &connector, &meeting, [&] { return ++calls > 3; });
  EXPECT_TRUE(connector.waits_for_listener());
  RendezvousListener listener(settings, 5, 80);
  EXPECT_TRUE(meet(listener, connector).connector);
}

TEST(Rendezvous, NobodyListens) {
  Settings settings = test_settings();
  RendezvousConnector once = connector_to(settings, 80);
  const Error refused = failure_of(nullptr, once);
  EXPECT_EQ(refused.code().value(), ECONNREFUSED);
  EXPECT_THAT(refused.what(), HasSubstr("nobody listens there; start the listener"));
  EXPECT_THAT(refused.what(), HasSubstr("wherry+ofi://5:80 on 127.0.0.1"));
  EXPECT_THROW((void)once.advance(), Error) << "and then always";

  RendezvousConnector until = connector_to(settings, 80, Timer::Clock::now() + std::chrono::milliseconds(50));
  EXPECT_THAT(failure_of(nullptr, until).what(), HasSubstr("waited"));
}

TEST(Rendezvous, AHostWithoutAnAddress) {
  RendezvousConnector connector = connector_to(test_settings(), 80, std::nullopt, "no-such-host.invalid");
  const Error error = failure_of(nullptr, connector);
  EXPECT_EQ(error.code().value(), ENOENT);
  EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  EXPECT_THAT(error.what(), HasSubstr("WHERRY_HOSTS"));
}

TEST(Rendezvous, AnotherKeyMeetsNoOne) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  Settings other = settings;
  other.key[31] ^= std::byte{1};
  RendezvousConnector connector = connector_to(other, 80);
  const Error error = failure_of(&listener, connector);
  EXPECT_EQ(error.code().value(), EACCES);
  EXPECT_THAT(error.what(), HasSubstr("has another key; copy the file that WHERRY_KEY names to both hosts"));
  EXPECT_EQ(listener.visitor(), nullptr);
}

TEST(Rendezvous, AnotherAddressIsNotTakenForTheOneWanted) {
  Settings settings = test_settings();
  settings.ports = {47000, 47003};  // both of one range, so that one is asked for the other
  RendezvousListener listener(settings, 5, 81);
  RendezvousConnector connector = connector_to(settings, 80);
  EXPECT_EQ(failure_of(&listener, connector).code().value(), ECONNREFUSED);
}

TEST(Rendezvous, ARefusalSaysWhy) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  RendezvousConnector connector = connector_to(settings, 80, seconds_from_now(1000));
  std::optional<Meeting> none;
  drive(&listener, &connector, &none, [&] { return listener.visitor() != nullptr; });
  listener.refuse("the segment is too large");
  const Error error = failure_of(&listener, connector);
  EXPECT_EQ(error.code().value(), ECONNREFUSED);
  EXPECT_THAT(error.what(), HasSubstr("the listener refused: the segment is too large"));
}

TEST(Rendezvous, AListenerThatEndsBeforeItAccepts) {
  const Settings settings = test_settings();
  auto listener = std::make_unique<RendezvousListener>(settings, 5, 80);
  RendezvousConnector connector = connector_to(settings, 80, seconds_from_now(1000));
  std::optional<Meeting> none;
  drive(listener.get(), &connector, &none, [&] { return !connector.waits_for_listener(); });
  drive(listener.get(), &connector, &none, [&] { return listener->visitor() != nullptr; });
  // The receipt has to be read: what ends before it is looked for again.
  pollfd polled{.fd = connector.descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&polled, 1, -1), 1);
  (void)connector.advance();
  listener.reset();
  EXPECT_EQ(failure_of(nullptr, connector).code().value(), ECONNRESET);
}

TEST(Rendezvous, AConnectorThatGivesUpIsNoVisitorAnyMore) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  std::optional<RendezvousConnector> connector(connector_to(settings, 80));
  std::optional<Meeting> none;
  drive(&listener, &*connector, &none, [&] { return listener.visitor() != nullptr; });
  connector.reset();
  drive(&listener, nullptr, nullptr, [&] { return listener.visitor() == nullptr; });
  EXPECT_FALSE(listener.accept(test_introduction("listener")));
}

TEST(Rendezvous, AnAddressIsListenedOnOnce) {
  const Settings settings = test_settings();
  std::optional<RendezvousListener> listener(std::in_place, settings, 5, 80);
  try {
    const RendezvousListener second(settings, 5, 80);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EADDRINUSE);
    EXPECT_THAT(error.what(), HasSubstr("another process of this host listens there"));
  }
  const RendezvousListener free(settings, 5, std::nullopt);
  EXPECT_NE(free.port(), 80);
  for (int i = 0; i < 100; ++i) {  // at once after its end, though a connection of its is left in the kernel
    RendezvousConnector connector = connector_to(settings, 80);
    BothEnds ends = meet(*listener, connector);
    ends.listener.reset();
    listener.reset();
    listener.emplace(settings, 5, 80);
  }
}

TEST(Rendezvous, TheNextPortIsTakenWhereAnotherProgramHasTheFirst) {
  const Settings settings = test_settings();
  const PortOrder order(settings.ports, job_number(settings.job), 5, 80);
  const UniqueFd first = listen_on_first_free(order);
  RendezvousListener listener(settings, 5, 80);
  EXPECT_NE(listener.tcp_port(), order[0]);
  RendezvousConnector connector = connector_to(settings, 80);
  const UniqueFd silent = [&] {  // takes the connection and closes it
    pollfd polled{.fd = first.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, -1), 1);
    return UniqueFd(::accept4(first.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }();
  ::shutdown(silent.get(), SHUT_RDWR);
  EXPECT_TRUE(meet(listener, connector).connector);
}

TEST(Rendezvous, AListenerFarDownTheOrderIsFound) {
  const Settings settings = test_settings();
  const PortOrder order(settings.ports, job_number(settings.job), 5, 80);
  std::vector<UniqueFd> taken;
  for (int i = 0; i < 40; ++i) taken.push_back(listen_on_first_free(order));
  RendezvousListener listener(settings, 5, 80);
  taken.clear();
  RendezvousConnector connector = connector_to(settings, 80, seconds_from_now(1000));
  EXPECT_TRUE(meet(listener, connector).connector);
}

TEST(Rendezvous, IntroductionsAreBounded) {
  const Settings settings = test_settings();
  RendezvousListener listener(settings, 5, 80);
  Introduction own = test_introduction("x");
  own.data.resize(Introduction::kMostData + 1);
  RendezvousConnector connector(settings, kLocal, 5, 80, own, std::nullopt);
  EXPECT_EQ(failure_of(&listener, connector).code().value(), EINVAL);
}

TEST(Rendezvous, NothingLeaks) {
  const std::size_t before = open_descriptors();
  {
    const Settings settings = test_settings();
    RendezvousListener listener(settings, 5, 80);
    RendezvousConnector connector = connector_to(settings, 80);
    (void)meet(listener, connector);
    RendezvousConnector another = connector_to(settings, 81);
    (void)failure_of(&listener, another);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace wherry::fabric::ofi
