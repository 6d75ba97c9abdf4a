// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <set>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamConnect : public StreamTest {
 protected:
  [[nodiscard]] Listener listen_anywhere() const { return listen(address()); }
  /// The same port as `listener`'s, with something else than its node.
  [[nodiscard]] std::string with_node(const Listener& listener, std::string_view node) const {
    return address(std::string(node).append(":").append(std::to_string(*listener.local().port)));
  }
};

TEST_P(StreamConnect, BothSidesKnowWhoIsThere) {
  Listener listener = listen_anywhere();
  std::thread connector([&] {
    const Stream stream = connect(listener.local().to_string());
    EXPECT_EQ(stream.peer().pid, GetParam().vouches ? ::getpid() : 0);
    EXPECT_EQ(stream.peer().uid, GetParam().vouches ? ::geteuid() : UINT32_MAX);
    EXPECT_EQ(stream.peer().address.port, listener.local().port);
    EXPECT_EQ(stream.local().node, own_node());
  });
  const Stream stream = listener.accept(kTimeout);
  connector.join();
  EXPECT_EQ(stream.local(), listener.local());
  EXPECT_EQ(stream.peer().pid, GetParam().vouches ? ::getpid() : 0);
  EXPECT_EQ(stream.peer().uid, GetParam().vouches ? ::geteuid() : UINT32_MAX);
  EXPECT_EQ(stream.peer().address.node, own_node());
}

TEST_P(StreamConnect, NobodyListensThere) {
  const std::string nowhere = listen_anywhere().local().to_string();
  EXPECT_EQ(error_of([&] { (void)start_connect(nowhere, {}, 0ns).finish(kTimeout); }), ECONNREFUSED);
  const int error = error_of([&] { (void)connect(nowhere, 0ns); });
  // Where the other host must be asked, its answer may come in time, or not.
  EXPECT_TRUE(error == ECONNREFUSED || (error == ETIMEDOUT && !GetParam().refuses_at_once)) << error;
}

TEST_P(StreamConnect, AnErrorNamesWhatWasTriedAndWhere) {
  const std::string nowhere = listen_anywhere().local().to_string();
  try {
    (void)connect(nowhere, 0ns);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(nowhere), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("connect"), std::string::npos) << error.what();
  }
}

TEST_P(StreamConnect, AnAddressInUse) {
  const Listener listener = listen_anywhere();
  EXPECT_EQ(error_of([&] { (void)listen(listener.local().to_string()); }), EADDRINUSE);
  EXPECT_EQ(error_of([&] { (void)listen(with_node(listener, "*")); }), EADDRINUSE);
}

TEST_P(StreamConnect, AnotherNodesAddressIsNotOurs) {
  EXPECT_EQ(error_of([&] { (void)listen(address("65000:*")); }), EADDRNOTAVAIL);
  const Listener listener = listen_anywhere();
  EXPECT_EQ(error_of([&] { (void)connect(with_node(listener, "65000"), 0ns); }), ECONNREFUSED);
}

TEST_P(StreamConnect, BadAddresses) {
  for (const std::string where :
       {"", ":", "0", "0:", ":1", "0:0", "0:65536", "65536:1", "-1:5", "a:b", "0:1x", "0:1:2"}) {
    EXPECT_EQ(error_of([&] { (void)listen(address(where)); }), EINVAL) << where;
    EXPECT_EQ(error_of([&] { (void)connect(address(where)); }), EINVAL) << where;
  }
  for (const std::string text : {"", "wherry", "tcp://0:1", "wherry+nothing://0:1"}) {
    EXPECT_EQ(error_of([&] { (void)connect(text); }), EINVAL) << text;
  }
  EXPECT_EQ(error_of([&] { (void)connect(address("*:2000")); }), EINVAL) << "whom to connect to must be said";
  EXPECT_EQ(error_of([&] { (void)connect(address("0:*")); }), EINVAL);
}

TEST_P(StreamConnect, AcceptAndConnectTimeOut) {
  Listener listener = listen_anywhere();
  EXPECT_EQ(error_of([&] { (void)listener.accept(5ms); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { (void)listener.accept(0ms); }), ETIMEDOUT);
  const std::string where = listener.local().to_string();
  EXPECT_EQ(error_of([&] { (void)connect(where, {}, 5ms); }), ETIMEDOUT);
  const ScopedEnvironment configured("WHERRY_CONNECT_TIMEOUT", "5");
  EXPECT_EQ(error_of([&] { (void)connect(where); }), ETIMEDOUT);
}

TEST_P(StreamConnect, NothingIsToBeAcceptedOrFinishedUntilItIs) {
  Listener listener = listen_anywhere();
  EXPECT_FALSE(listener.try_accept().has_value());
  EXPECT_FALSE(becomes_readable(listener.descriptor(), 0ms));
  Connecting connecting = start_connect(listener.local().to_string());
  EXPECT_FALSE(connecting.try_finish().has_value());
  EXPECT_FALSE(becomes_readable(connecting.descriptor(), 0ms));
  EXPECT_TRUE(becomes_readable(listener.descriptor(), kTimeout));
  Stream accepted = listener.accept(kTimeout);
  EXPECT_TRUE(becomes_readable(connecting.descriptor(), kTimeout));
  std::optional<Stream> connected;
  while (!(connected = connecting.try_finish())) std::this_thread::yield();
  EXPECT_FALSE(becomes_readable(listener.descriptor(), 0ms));
  ASSERT_TRUE(connected->send(pattern_.bytes(10)).ok());
  expect_bytes(accepted, pattern_, 10);
}

TEST_P(StreamConnect, TheAcceptorMaySendBeforeTheConnectorHasFinished) {
  Listener listener = listen_anywhere();
  Connecting connecting = start_connect(listener.local().to_string(), {.ring_bytes = 8192});
  {
    Stream accepted = listener.accept(kTimeout);
    ASSERT_EQ(accepted.send(pattern_.bytes(8192), kTimeout).bytes, 8192U);
  }
  std::optional<Stream> connected;
  while (!(connected = connecting.try_finish())) std::this_thread::yield();
  expect_all_then_end(*connected, pattern_, 8192);
}

TEST_P(StreamConnect, AClosedListenerRefusesWhoWaits) {
  std::optional<Listener> listener = listen_anywhere();
  Connecting connecting = start_connect(listener->local().to_string());
  ASSERT_TRUE(becomes_readable(listener->descriptor(), kTimeout));
  listener.reset();
  EXPECT_TRUE(becomes_readable(connecting.descriptor(), kTimeout));
  EXPECT_EQ(error_of([&] {
              while (!connecting.try_finish()) std::this_thread::yield();
            }),
            ECONNREFUSED);
}

TEST_P(StreamConnect, AThreadThatConnectsHearsOfTheClosedListener) {
  std::optional<Listener> listener = listen_anywhere();
  const std::string where = listener->local().to_string();
  std::thread connector(
      [&] { EXPECT_EQ(error_of([&] { (void)start_connect(where, {}, 0ns).finish(kTimeout); }), ECONNREFUSED); });
  ASSERT_TRUE(becomes_readable(listener->descriptor(), kTimeout));
  listener.reset();
  connector.join();
}

TEST_P(StreamConnect, WhoGivesUpLeavesNoStreamThatHangs) {
  Listener listener = listen_anywhere();
  {
    const Connecting given_up = start_connect(listener.local().to_string());
  }
  if (auto accepted = listener.try_accept()) {
    std::array<std::byte, 1> none{};
    EXPECT_EQ(accepted->receive(none, kTimeout).error, ECONNRESET);
  }
  Connecting next = start_connect(listener.local().to_string());
  EXPECT_TRUE(listener.accept(kTimeout).is_open());
}

TEST_P(StreamConnect, ListenersAndAttemptsMayBeMoved) {
  Listener first = listen_anywhere();
  Listener listener = std::move(first);
  Connecting started = start_connect(listener.local().to_string());
  Connecting connecting = std::move(started);
  Stream accepted = listener.accept(kTimeout);
  Listener other = listen_anywhere();
  other = std::move(listener);
  EXPECT_NE(start_connect(other.local().to_string()).descriptor(), -1);
}

TEST_P(StreamConnect, AThousandConnectionsInOneProcess) {
  constexpr std::size_t kConnections = 1000;
  {
    const Streams warm_up = connect_pair();
  }
  const std::size_t before = open_descriptors();
  std::vector<Streams> all;
  for (std::size_t i = 0; i < kConnections; ++i) all.push_back(small_pair());
  for (Streams& ends : all) {
    for (Stream* end : {&ends.connector, &ends.acceptor}) EXPECT_NE(end->receive_descriptor(), end->send_descriptor());
  }
  RecordProperty("descriptors_per_end", static_cast<int>((open_descriptors() - before) / (2 * kConnections)));
  // Those that many ends share do not count.
  EXPECT_LE((open_descriptors() - before) / (2 * kConnections), GetParam().descriptors);
  for (std::size_t i = 0; i < kConnections; ++i) {
    ASSERT_TRUE(all[i].connector.send(pattern_.bytes(100, i)).ok());
    ASSERT_TRUE(all[i].acceptor.send(pattern_.bytes(100, i + 50)).ok());
  }
  for (std::size_t i = 0; i < kConnections; ++i) {
    expect_bytes(all[i].acceptor, pattern_, 100, i);
    expect_bytes(all[i].connector, pattern_, 100, i + 50);
  }
  all.clear();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(StreamConnect, ManyConnectorsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 20;
  Listener listener = listen_anywhere();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        Stream stream = connect(listener.local().to_string(), {.ring_bytes = 4096}, kTimeout);
        EXPECT_TRUE(stream.send(pattern_.bytes(100)).ok());
      }
    });
  }
  for (int i = 0; i < kThreads * kEach; ++i) {
    Stream stream = listener.accept(kTimeout);
    expect_all_then_end(stream, pattern_, 100);
  }
  for (std::thread& thread : threads) thread.join();
}

WHERRY_ON_EVERY_FABRIC(StreamConnect);

}  // namespace
}  // namespace wherry::conformance
