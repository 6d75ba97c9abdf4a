// SPDX-License-Identifier: Apache-2.0
// Connecting before the listener is there: streams, frames, messages and mailboxes wait for it.
#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "tests/conformance/child_process.hpp"
#include "tests/conformance/mailbox_pair.hpp"
#include "tests/conformance/message_pair.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

using Clock = std::chrono::steady_clock;

/// Some attempts of a connector; longer makes none of these tests pass or fail.
constexpr auto kSomeAttempts = 20ms;

/// An address without a listener, which may be listened on.
std::string nowhere(const FabricUnderTest& tested) {
  const std::string scheme = "wherry+" + std::string(tested.fabric) + "://";
  return scheme + "0:" + std::to_string(*listen(scheme + "*:*").local().port);
}

/// The text of the Error that `call` throws; empty: none.
template <class Call>
std::string text_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Finishes both ends by their descriptors, as an event loop does.
Streams meet(Listener& listener, Connecting& connecting) {
  Streams ends;
  while (!ends.connector.is_open()) {
    const int listening = ends.acceptor.is_open() ? -1 : listener.descriptor();
    std::array polled{pollfd{connecting.descriptor(), POLLIN, 0}, pollfd{listening, POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0) throw std::runtime_error("poll");
    if (polled[1].revents != 0) {
      if (auto accepted = listener.try_accept()) ends.acceptor = std::move(*accepted);
    }
    if (polled[0].revents == 0) continue;
    if (auto connected = connecting.try_finish()) ends.connector = std::move(*connected);
  }
  return ends;
}

class ConnectFirst : public StreamTest {
 protected:
  const std::string where_ = nowhere(GetParam());
};

TEST_P(ConnectFirst, ABlockingConnectSucceedsOnceSomebodyListens) {
  std::thread connector([&] {
    Stream stream = connect(where_, {}, kTimeout);
    EXPECT_TRUE(stream.send(pattern_.bytes(100)).ok());
  });
  std::this_thread::sleep_for(kSomeAttempts);
  Listener listener = listen(where_);
  Stream accepted = listener.accept(kTimeout);
  expect_all_then_end(accepted, pattern_, 100);
  connector.join();
}

TEST_P(ConnectFirst, FramesAndWindowsComeWithTheStream) {
  std::thread connector([&] {
    FramedStream frames(connect(where_, {.windows = true}, kTimeout));
    EXPECT_TRUE(frames.send("first").ok());
    EXPECT_TRUE(frames.receive(kTimeout).result.ended());
  });
  std::this_thread::sleep_for(kSomeAttempts);
  Listener listener = listen(where_, {.windows = true});
  FramedStream frames(listener.accept(kTimeout));
  EXPECT_EQ(frames.receive(kTimeout).message.size(), 5U);
  frames.close();
  connector.join();
}

TEST_P(ConnectFirst, AnAttemptSucceedsByItsDescriptorWhichStaysTheSame) {
  Connecting connecting = start_connect(where_);
  const int descriptor = connecting.descriptor();
  EXPECT_FALSE(connecting.try_finish().has_value());
  Listener listener = listen(where_);
  Streams ends = meet(listener, connecting);
  EXPECT_EQ(connecting.descriptor(), descriptor);
  EXPECT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  expect_bytes(ends.acceptor, pattern_, 10);
}

TEST_P(ConnectFirst, AnAttemptMayBeFinishedByBlocking) {
  Connecting connecting = start_connect(where_);
  const std::string early = text_of([&] { (void)connecting.finish(5ms); });
  // The other host may not have answered yet.
  EXPECT_TRUE(early.ends_with("nobody listens there yet; start the listener, or wait longer") ||
              (!GetParam().refuses_at_once && early.find("127.0.0.1:") != std::string::npos))
      << early;
  Listener listener = listen(where_);
  std::thread acceptor([&] { EXPECT_TRUE(listener.accept(kTimeout).is_open()); });
  EXPECT_TRUE(connecting.finish(kTimeout).is_open());
  acceptor.join();
}

TEST_P(ConnectFirst, WhileNobodyListensThereIsLittleToDo) {
  Connecting connecting = start_connect(where_);
  const auto end = Clock::now() + 300ms;
  int wakes = 0;
  for (; Clock::now() < end; ++wakes) {
    ASSERT_TRUE(becomes_readable(connecting.descriptor(), kTimeout));
    EXPECT_FALSE(connecting.try_finish().has_value());
  }
  // After 1, 2, 4 ... 64 ms, then every 100 ms; the first may find that it is early by less than the clock's unit. A
  // refusal that does not come at once is another.
  EXPECT_LE(wakes, GetParam().refuses_at_once ? 12 : 24);
}

TEST_P(ConnectFirst, WithoutTimeItIsRefusedAtOnce) {
  if (!GetParam().refuses_at_once) GTEST_SKIP() << "the other host must be asked";
  EXPECT_EQ(error_of([&] { (void)connect(where_, {}, 0ns); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { (void)start_connect(where_, {}, 0ns); }), ECONNREFUSED);
  const ScopedEnvironment configured("WHERRY_CONNECT_TIMEOUT", "0");
  EXPECT_EQ(error_of([&] { (void)connect(where_); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { (void)start_connect(where_); }), ECONNREFUSED);
}

TEST_P(ConnectFirst, WithoutTimeThereIsOneAttempt) {
  const std::string refused = text_of([&] { (void)start_connect(where_, {}, 0ns).finish(kTimeout); });
  EXPECT_NE(refused.find("Connection refused; "), std::string::npos) << refused;
  EXPECT_EQ(refused.find("; waited "), std::string::npos) << refused;
}

TEST_P(ConnectFirst, TheTimeoutEndsItWithARefusalThatSaysHowLongItWaited) {
  const auto start = Clock::now();
  const std::string refused = text_of([&] { (void)connect(where_, {}, 30ms); });
  EXPECT_NE(refused.find("Connection refused; "), std::string::npos) << refused;
  EXPECT_NE(refused.find("; waited "), std::string::npos) << refused;
  EXPECT_GE(Clock::now() - start, 30ms);
  const ScopedEnvironment configured("WHERRY_CONNECT_TIMEOUT", "30");
  EXPECT_EQ(error_of([&] { (void)connect(where_); }), ECONNREFUSED);
}

TEST_P(ConnectFirst, AnAttemptThatGivesUpSaysSoByItsDescriptorUntilItIsDropped) {
  // Where one attempt takes longer than that, the call itself gives up.
  Connecting connecting;
  for (auto wait = 30ms; error_of([&] { connecting = start_connect(where_, {}, wait); }) != 0; wait *= 2) continue;
  const auto until_refused = [&] {
    while (becomes_readable(connecting.descriptor(), kTimeout)) (void)connecting.try_finish();
  };
  EXPECT_EQ(error_of(until_refused), ECONNREFUSED);
  EXPECT_EQ(error_of(until_refused), ECONNREFUSED);
}

TEST_P(ConnectFirst, ForEverIsNoTimeThatHasPassed) {
  Connecting connecting = start_connect(where_, {}, std::chrono::nanoseconds::max());
  std::this_thread::sleep_for(kSomeAttempts);
  EXPECT_FALSE(connecting.try_finish().has_value());
  Listener listener = listen(where_);
  EXPECT_TRUE(meet(listener, connecting).connector.is_open());
}

TEST_P(ConnectFirst, ARefusalByAListenerIsFinal) {
  Connecting connecting = start_connect(where_);
  std::optional<Listener> listener = listen(where_);
  while (!becomes_readable(listener->descriptor(), 1ms)) EXPECT_FALSE(connecting.try_finish().has_value());
  listener.reset();
  EXPECT_EQ(error_of([&] { (void)connecting.finish(kTimeout); }), ECONNREFUSED);
}

TEST_P(ConnectFirst, AnAttemptThatIsDroppedLeavesNothing) {
  const std::size_t before = open_descriptors();
  {
    Connecting connecting = start_connect(where_);
    (void)connecting.try_finish();
  }
  EXPECT_EQ(open_descriptors(), before);
}

/// Lowers the limit of open files, so that no more can be opened.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(ConnectFirst, AnotherErrorThanARefusalEndsIt) {
  Connecting connecting = start_connect(where_, {}, kTimeout);
  const Listener listener = listen(where_);
  EXPECT_EQ(error_of([&] {
              const NoMoreDescriptors here;
              while (!connecting.try_finish()) std::this_thread::yield();
            }),
            EMFILE);
}

TEST_P(ConnectFirst, AForkedChildLeavesTheAttemptToItsParent) {
  Connecting connecting = start_connect(where_);
  {
    ChildProcess child([&] {
      const std::string refused = text_of([&] { (void)connecting.try_finish(); });
      EXPECT_TRUE(refused.ends_with("this attempt belongs to the process that started it; connect again after a fork"));
      connecting = Connecting();
    });
    EXPECT_EQ(child.exit_status(), 0);
  }
  Listener listener = listen(where_);
  EXPECT_TRUE(meet(listener, connecting).connector.is_open());
}

WHERRY_ON_EVERY_FABRIC(ConnectFirst);

TEST(ConnectToAFaultyFabric, IsRepeatedWhenItIsRefused) {
  const ScopedEnvironment faults("WHERRY_FAULTS", "seed=1,refuse=50");
  for (int i = 0; i < 20; ++i) {
    Listener listener = listen("wherry+faulty+inproc://*:*");
    Connecting connecting = start_connect("wherry+faulty+inproc://0:" + std::to_string(*listener.local().port));
    EXPECT_TRUE(meet(listener, connecting).connector.is_open());
  }
}

class MailboxConnectsFirst : public MailboxTest {
 protected:
  const Address where_ = Address::parse(nowhere(GetParam()));
};

TEST_P(MailboxConnectsFirst, AndItsMessagesArriveOnceThePeerListens) {
  Mailbox from;
  const Mailbox::Peer peer = from.connect(where_);
  EXPECT_TRUE(from.try_send(peer, pattern_.bytes(10)).would_block());
  EXPECT_EQ(from.connect(where_), peer);
  Mailbox to;
  to.listen(where_);
  drive({&from, &to}, [&] { return from.section(peer).outgoing != 0; });
  pass(from, peer, to, pattern_, 1000);
}

TEST_P(MailboxConnectsFirst, AndABlockingSendWaitsForThePeer) {
  std::thread sender([&] {
    Mailbox from;
    EXPECT_TRUE(from.send(from.connect(where_, kTimeout), pattern_.bytes(10), kTimeout).ok());
  });
  std::this_thread::sleep_for(kSomeAttempts);
  Mailbox to;
  to.listen(where_);
  Mailbox::Peer from = Mailbox::kNoPeer;
  EXPECT_TRUE(pattern_.matches(receive(to, from), 0));
  sender.join();
}

TEST_P(MailboxConnectsFirst, ByItsDescriptorInAnEventLoop) {
  if (GetParam().fabric == "ofi") GTEST_SKIP() << "the listener here is not driven when the connector's hello arrives";
  Mailbox from;
  const Mailbox::Peer peer = from.connect(where_, kTimeout);
  const int descriptor = from.descriptor();
  while (from.progress()) continue;
  Mailbox to;
  to.listen(where_);
  while (from.section(peer).outgoing == 0) {
    ASSERT_TRUE(becomes_readable(descriptor, kTimeout));
    from.progress();
    (void)to.wait(0ms);
  }
  pass(from, peer, to, pattern_, 100);
}

TEST_P(MailboxConnectsFirst, TwoThatWaitForEachOtherBecomeOnePair) {
  for (int round = 0; round < 5; ++round) {
    Mailbox one = listening();
    const Address address = Address::parse(nowhere(GetParam()));
    const Mailbox::Peer to_other = one.connect(address);
    Mailbox other;
    other.listen(address);
    const Mailbox::Peer to_one = other.connect(where(one));
    drive({&one, &other}, [&] { return one.section(to_other).outgoing != 0 && other.section(to_one).outgoing != 0; });
    pass(one, to_other, other, pattern_, 1000);
    pass(other, to_one, one, pattern_, 1000, 5);
    EXPECT_EQ(one.peers(), 1U);
    EXPECT_EQ(other.peers(), 1U);
  }
}

/// The two sides of a round: each counts itself once it has sent and received, and closes once the other has left.
struct Crossing {
  std::atomic<int> done{0};
  std::barrier<> closing{2};
};

/// Listens at `own` and connects to `other`, while another thread does the reverse. Then each sends a message.
void cross(const Address& own, const Address& other, Crossing& crossing, std::mt19937_64& random) {
  Mailbox mailbox;
  for (auto i = random() % 300; i > 0; --i) (void)mailbox.progress();
  mailbox.listen(own);
  for (auto i = random() % 300; i > 0; --i) (void)mailbox.progress();
  const Mailbox::Peer to = mailbox.connect(other, kTimeout);
  const std::array<std::byte, 1> message{};
  const bool sleeps = random() % 2 == 0;
  bool sent = false, received = false;
  while (crossing.done < 2) {
    const bool was_done = sent && received;
    if (!sent) sent = mailbox.try_send(to, message).ok();
    std::array<std::byte, 1> buffer{};
    Mailbox::Peer from = Mailbox::kNoPeer;
    if (mailbox.try_receive(buffer, from).ok()) {
      EXPECT_FALSE(std::exchange(received, true));
      EXPECT_EQ(from, to);
    }
    (void)mailbox.wait(sleeps && !(sent && received) ? kTimeout : 0s);
    if (sent && received && !was_done) ++crossing.done;
    if (Mailbox::Loss loss{}; mailbox.losses(std::span(&loss, 1)) != 0) {
      ADD_FAILURE() << "peer " << loss.peer << " was lost: error " << loss.error;
      crossing.done = 2;
    }
  }
  EXPECT_EQ(mailbox.peers(), 1U);
  crossing.closing.arrive_and_wait();
}

TEST_P(MailboxConnectsFirst, TwoThreadsThatListenAndConnectToEachOtherBecomeOnePair) {
  std::mt19937_64 one_random(1), other_random(2);
  for (int round = 0; round < 10 && !HasFailure(); ++round) {
    Address one, other;
    {
      const Mailbox first = listening(), second = listening();
      one = where(first);
      other = where(second);
    }
    Crossing crossing;
    std::thread thread([&] { cross(one, other, crossing, one_random); });
    cross(other, one, crossing, other_random);
    thread.join();
  }
}

TEST_P(MailboxConnectsFirst, APeerThatNeverListensIsALoss) {
  Mailbox from;
  const Mailbox::Peer peer = from.connect(where_, 500ms);
  EXPECT_EQ(from.send(peer, pattern_.bytes(10), kTimeout).error, ECONNREFUSED);
  Mailbox::Loss loss{};
  ASSERT_EQ(from.losses(std::span(&loss, 1)), 1U);
  EXPECT_EQ(loss.peer, peer);
  EXPECT_EQ(loss.error, ECONNREFUSED);
}

TEST_P(MailboxConnectsFirst, WithoutTimeThereIsOneAttempt) {
  Mailbox from;
  if (GetParam().refuses_at_once) {
    EXPECT_EQ(error_of([&] { from.connect(where_, 0ns); }), ECONNREFUSED);
  } else {
    EXPECT_EQ(from.send(from.connect(where_, 0ns), pattern_.bytes(10), kTimeout).error, ECONNREFUSED);
  }
  EXPECT_EQ(from.peers(), 0U);
}

TEST_P(MailboxConnectsFirst, AndMayForgetThePeerMeanwhile) {
  Mailbox from;
  const std::size_t before = open_descriptors();
  from.forget(from.connect(where_));
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(from.peers(), 0U);
}

WHERRY_ON_EVERY_FABRIC(MailboxConnectsFirst);

class MessagesConnectFirst : public MessageTest {
 protected:
  const std::string where_ = nowhere(GetParam());
};

TEST_P(MessagesConnectFirst, ASubscriberWaitsForItsPublisher) {
  Subscriber subscriber;
  subscriber.start_connect(where_);
  EXPECT_EQ(subscriber.admit(), 0U);
  Publisher publisher;
  publisher.listen(where_);
  conformance::meet(publisher, subscriber);
  publish(publisher, pattern_, 100);
  expect_message(subscriber, pattern_, 100);
}

TEST_P(MessagesConnectFirst, APublisherWaitsForItsSubscriber) {
  Publisher publisher;
  publisher.start_connect(where_);
  Subscriber subscriber;
  subscriber.listen(where_);
  conformance::meet(publisher, subscriber);
  publish(publisher, pattern_, 100);
  expect_message(subscriber, pattern_, 100);
}

/// A subscriber that has begun in another thread, by `connect`, gets a message of a publisher that listens later.
void publish_to_earlier(const std::string& where, const Pattern& pattern,
                        const std::function<void(Subscriber&)>& connect) {
  std::thread subscribing([&] {
    Subscriber subscriber;
    connect(subscriber);
    expect_message(subscriber, pattern, 100);
  });
  std::this_thread::sleep_for(kSomeAttempts);
  Publisher publisher;
  publisher.listen(where);
  EXPECT_EQ(publisher.admit(1, kTimeout), 1U);
  publish(publisher, pattern, 100);
  subscribing.join();
}

TEST_P(MessagesConnectFirst, ATakeWaitsForThePublisherToListen) {
  publish_to_earlier(where_, pattern_, [&](Subscriber& subscriber) { subscriber.start_connect(where_, kTimeout); });
}

TEST_P(MessagesConnectFirst, BlockingConnectsWaitToo) {
  publish_to_earlier(where_, pattern_, [&](Subscriber& subscriber) { subscriber.connect(where_, kTimeout); });
}

TEST_P(MessagesConnectFirst, WithoutTimeTheyAreRefusedAtOnce) {
  Publisher publisher;
  Subscriber subscriber;
  EXPECT_EQ(error_of([&] { publisher.connect(where_, 0ns); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { publisher.start_connect(where_, 0ns); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { subscriber.connect(where_, 0ns); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { subscriber.start_connect(where_, 0ns); }), ECONNREFUSED);
}

TEST_P(MessagesConnectFirst, AnAttemptThatGivesUpIsNoEnd) {
  Subscriber subscriber;
  subscriber.start_connect(where_, 30ms);
  Message message;
  EXPECT_EQ(subscriber.take(message, kTimeout).error, ECONNREFUSED);
  Subscriber admitting;
  admitting.start_connect(where_, 30ms);
  EXPECT_EQ(error_of([&] { admitting.admit(1, kTimeout); }), ECONNREFUSED);
}

WHERRY_ON_MAPPED_FABRICS(MessagesConnectFirst);

}  // namespace
}  // namespace wherry::conformance
