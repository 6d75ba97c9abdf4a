// SPDX-License-Identifier: Apache-2.0
// A process that forks while it has streams, pollers, publishers and messages: what a child destroys or gives back of
// that is only its copy.
#include <fcntl.h>
#include <sched.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

struct StreamPair {
  Stream acceptor, connector;
};

StreamPair connect_pair() {
  Listener listener = listen("wherry+shm://*:*");
  Connecting connecting = start_connect(listener.local().to_string());
  Stream acceptor = listener.accept(kTimeout);
  return {std::move(acceptor), std::move(*connecting.try_finish())};
}

Result send_byte(Stream& stream, char byte) { return stream.send(std::as_bytes(std::span(&byte, 1)), kTimeout); }

char receive_byte(Stream& stream) {
  char byte = 0;
  return stream.receive(std::as_writable_bytes(std::span(&byte, 1)), kTimeout).ok() ? byte : '-';
}

Result publish_byte(Publisher& publisher, char byte) {
  Loan loan;
  const Result loaned = publisher.try_loan(loan, 1);
  if (!loaned.ok()) return loaned;
  loan.bytes()[0] = static_cast<std::byte>(byte);
  return publisher.try_publish(loan);
}

char byte_in(const Message& message) { return message.bytes().empty() ? '-' : static_cast<char>(message.bytes()[0]); }

/// One of everything that a process may have, each with something under way.
class Possessions {
 public:
  Possessions() {
    poller_.add(polled_.acceptor, 7);
    EXPECT_EQ(poller_.wait(ready_, 0ns), 0U);
    held_back_.hold();
    EXPECT_TRUE(held_back_.send(std::as_bytes(std::span("held", 4)), kTimeout).ok());
    publisher_.listen("wherry+shm://*:*");
    subscriber_.start_connect(publisher_.local().to_string());
    while (publisher_.admit() == 0 || subscriber_.admit() == 0) std::this_thread::yield();
    EXPECT_TRUE(publish_byte(publisher_, 'm').ok());
    EXPECT_TRUE(subscriber_.take(message_, kTimeout).ok());
    EXPECT_TRUE(publisher_.try_loan(loan_, 1).ok());
  }

  /// What a child does with its copies, and its exit in order would.
  bool destroy() {
    message_.release();
    loan_.release();
    subscriber_ = Subscriber();
    publisher_ = Publisher();
    poller_ = Poller();
    polled_ = {};
    held_back_.release().close();
    framed_.close();
    plain_ = {};
    return true;
  }

  void expect_untouched() {
    EXPECT_TRUE(publish_byte(publisher_, 'n').would_block()) << "the only place is still taken by what is held";
    EXPECT_EQ(byte_in(message_), 'm');
    message_.release();
    EXPECT_TRUE(publish_byte(publisher_, 'n').ok());
    EXPECT_TRUE(subscriber_.take(message_, kTimeout).ok());
    EXPECT_EQ(byte_in(message_), 'n');
    EXPECT_TRUE(loan_.held());

    EXPECT_TRUE(framed_.try_receive().result.would_block()) << "what is held back was not sent";
    EXPECT_TRUE(held_back_.flush().ok());
    EXPECT_EQ(framed_.try_receive().message.size(), 4U);
    EXPECT_TRUE(framed_.try_receive().result.would_block()) << "it was sent once, and no end has come";

    EXPECT_TRUE(send_byte(polled_.connector, 'p').ok());
    EXPECT_EQ(poller_.wait(ready_, kTimeout), 1U);
    EXPECT_EQ(ready_[0], 7U);
    EXPECT_EQ(receive_byte(polled_.acceptor), 'p');

    EXPECT_TRUE(send_byte(plain_.acceptor, 's').ok());
    EXPECT_EQ(receive_byte(plain_.connector), 's');
    std::byte nothing{};
    EXPECT_TRUE(plain_.connector.try_receive(std::span(&nothing, 1)).would_block()) << "no end has come";
  }

 private:
  StreamPair plain_ = connect_pair(), polled_ = connect_pair(), frames_ = connect_pair();
  FramedStream framed_{std::move(frames_.acceptor)}, held_back_{std::move(frames_.connector)};
  Poller poller_;
  std::array<Poller::Token, 1> ready_{};
  Publisher publisher_{{.pool_bytes = 4096}};
  Subscriber subscriber_{{.queue = 1}};
  Message message_;
  Loan loan_;
};

TEST(Fork, AChildThatDestroysItsCopiesEndsNothing) {
  Possessions mine;
  Child child([&] { return mine.destroy(); });
  ASSERT_EQ(child.wait(), 0);
  mine.expect_untouched();
}

/// The children that this process forks from now on are process 1 of a namespace of their own. Once for each process.
bool children_get_a_namespace() {
  const unsigned user = ::geteuid();
  const unsigned group = ::getegid();
  if (::unshare(CLONE_NEWPID) == 0) return true;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1\n";
  std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1\n";
  return true;
}

TEST(Fork, AChildWithItsParentsProcessNumberIsAnotherAllTheSame) {
  if (Child([] { return children_get_a_namespace(); }).wait() != 0) GTEST_SKIP() << "no namespaces here";
  Child outside([] {
    if (!children_get_a_namespace()) return false;
    Child parent([] {
      Possessions mine;
      if (!children_get_a_namespace()) return false;
      Child child([&] { return ::getpid() == 1 && mine.destroy(); });
      if (child.wait() != 0) return false;
      mine.expect_untouched();
      return ::getpid() == 1 && !::testing::Test::HasFailure();
    });
    return parent.wait() == 0;
  });
  EXPECT_EQ(outside.wait(), 0);
}

/// A worker that is forked to do the taking.
TEST(Fork, AChildThatTakesInItsParentsPlaceGivesBackWhatItTookItself) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen("wherry+shm://*:*");
  Subscriber subscriber({.queue = 1});
  subscriber.start_connect(publisher.local().to_string());
  while (publisher.admit() == 0 || subscriber.admit() == 0) std::this_thread::yield();
  constexpr int kMessages = 20;
  Child child([&] {
    for (int i = 0; i < kMessages; ++i) {
      Message message;
      if (!subscriber.take(message, kTimeout).ok() || byte_in(message) != static_cast<char>(i)) return false;
    }
    return true;
  });
  for (int i = 0; i < kMessages; ++i) {
    Loan loan;
    ASSERT_TRUE(publisher.loan(loan, 1, kTimeout).ok());
    loan.bytes()[0] = static_cast<std::byte>(i);
    ASSERT_TRUE(publisher.publish(loan, kTimeout).ok());
  }
  EXPECT_EQ(child.wait(), 0);
}

/// Both would write what they give back to the same place.
TEST(Fork, AChildTakesNothingWhileItsParentHoldsAMessage) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen("wherry+shm://*:*");
  Subscriber subscriber({.queue = 2});
  subscriber.start_connect(publisher.local().to_string());
  while (publisher.admit() == 0 || subscriber.admit() == 0) std::this_thread::yield();
  for (const char byte : {'a', 'b'}) ASSERT_TRUE(publish_byte(publisher, byte).ok());
  Message held;
  ASSERT_TRUE(subscriber.take(held, kTimeout).ok());
  for (const bool releases : {false, true}) {
    Child child([&] {
      if (releases) held.release();
      Message message;
      return subscriber.try_take(message).error == ENOTSUP && subscriber.take(message, kTimeout).error == ENOTSUP;
    });
    EXPECT_EQ(child.wait(), 0) << releases;
  }
  held.release();
  EXPECT_TRUE(publish_byte(publisher, 'c').ok()) << "what the parent gave back is back";
  for (const char byte : {'b', 'c'}) {
    ASSERT_TRUE(subscriber.take(held, kTimeout).ok());
    EXPECT_EQ(byte_in(held), byte);
  }
}

/// Of a subscriber that dies its publisher must hear although a child of it goes on.
TEST(Fork, AChildThatHasDestroyedItsCopyDoesNotHideItsParentsDeath) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen("wherry+shm://*:*");
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  UniqueFd child_may_end(pipe[1]);
  const UniqueFd end_of_child(pipe[0]);
  Child parent([&] {
    Subscriber subscriber;
    subscriber.connect(publisher.local().to_string(), kTimeout);
    // It dies only once the publisher has counted it.
    Message welcome;
    if (!subscriber.take(welcome, kTimeout).ok()) return false;
    welcome.release();
    std::array<int, 2> destroyed{};
    if (::pipe2(destroyed.data(), O_CLOEXEC) != 0) return false;
    if (::fork() == 0) {
      child_may_end.reset();
      subscriber = Subscriber();
      ::close(destroyed[0]);
      ::close(destroyed[1]);
      char nothing = 0;
      ::_exit(static_cast<int>(::read(end_of_child.get(), &nothing, 1)));
    }
    ::close(destroyed[1]);
    char nothing = 0;
    if (::read(destroyed[0], &nothing, 1) != 0) return false;
    ::_exit(0);  // nothing is said: it dies
  });
  EXPECT_EQ(publisher.admit(1, kTimeout), 1U);
  EXPECT_TRUE(publish_byte(publisher, 'm').ok());
  EXPECT_EQ(parent.wait(), 0);
  while (publisher.subscribers() != 0) {
    publisher.admit();
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace
}  // namespace wherry::fault
