// SPDX-License-Identifier: Apache-2.0
#include "sent.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "adapters/root/handover/fixture_test.hpp"

namespace wherry::root {
namespace {

/// As in sent.cc.
constexpr std::chrono::seconds kLongestWait{1};

/// Two ends of one connection, the sender's and the receiver's.
struct Ends {
  explicit Ends(bool windows = true) {
    const StreamOptions options{.ring_bytes = 4096, .windows = windows};
    Listener listener = listen("wherry://*:*", options);
    std::thread connecting([&] { sender = connect(listener.local().to_string(), options); });
    receiver = listener.accept();
    connecting.join();
  }
  Stream sender;
  Stream receiver;
};

/// Such that the sender says how far it is.
struct SayingEnds : Ends {
  OwnSent own{sender.windows()};
  PeersSent peers;
};

/// Whether awaiting these bytes took until `say()` had begun, in another thread and later. If not, this has come later
/// than any receiver waits.
template <class Say>
bool waits_until(SayingEnds& ends, std::uint64_t received, Say&& say) {
  std::atomic<bool> said{false};
  std::thread saying([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the other thread to come too early, if it does
    said = true;
    say();
  });
  const auto before = std::chrono::steady_clock::now();
  ends.peers.await(ends.receiver, received);
  const bool waited = said;
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_TRUE(waited || took >= kLongestWait);
  saying.join();
  return waited;
}

/// That nothing is awaited: if it were, it would be for longer than the test's watchdog allows.
template <class Await>
void expect_no_wait(Await&& await) {
  for (int i = 0; i < 2000; ++i) await();
}

TEST(Sent, IsAwaitedUntilTheSendersCallIsOver) {
  for (bool waited = false; !waited && !HasFailure();) {
    SayingEnds ends;
    ends.own.add(6);
    waited = waits_until(ends, 10, [&] { ends.own.add(4); }) && waits_until(ends, 11, [&] { ends.own.add(1); });
  }
}

TEST(Sent, IsNotAwaitedWhereMoreHasCome) {
  const std::array<std::byte, 1> more{};
  for (bool waited = false; !waited && !HasFailure();) {
    SayingEnds ends;
    waited = waits_until(ends, 10, [&] { EXPECT_TRUE(ends.sender.send(more).ok()); });
    expect_no_wait([&] { PeersSent().await(ends.receiver, 10); });
  }
}

TEST(Sent, IsNotAwaitedWhereThePeerIsGone) {
  for (bool waited = false; !waited && !HasFailure();) {
    SayingEnds ends;
    waited = waits_until(ends, 10, [&] { ends.sender.close(); });
  }
}

TEST(Sent, OfAPeerThatNeverSaysIsAwaitedOnce) {
  SayingEnds ends;
  expect_no_wait([&] { ends.peers.await(ends.receiver, 1); });
}

TEST(Sent, OfAPeerThatShowsNothingIsNotAwaited) {
  Ends ends;
  expect_no_wait([&] { PeersSent().await(ends.receiver, 1); });
}

TEST(Sent, WithoutWindowsIsNotAwaited) {
  Ends ends(false);
  expect_no_wait([&] { PeersSent().await(ends.receiver, 1); });
}

}  // namespace
}  // namespace wherry::root
