// SPDX-License-Identifier: Apache-2.0
// pthread_cancel of a thread during or before a call of wherry.h takes effect only after the call.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <vector>

#include <wherry/wherry.h>

namespace {

constexpr int64_t kTimeout = 3'600'000'000'000;  // an hour: the watchdog ends the test earlier

struct Call {
  std::function<void()> body;
  bool returned = false;
};

void* run(void* argument) {
  auto& call = *static_cast<Call*>(argument);
  call.body();
  call.returned = true;
  pthread_testcancel();
  return nullptr;
}

/// Runs `body` in a thread with a pending cancellation: the first enabled cancellation point would end the thread.
void expect_to_return(const char* name, const std::function<void()>& body) {
  Call call{.body = [&] {
    pthread_cancel(pthread_self());
    body();
  }};
  pthread_t thread{};
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&thread, nullptr, run, &call), 0);
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_TRUE(call.returned) << name;
  EXPECT_EQ(result, PTHREAD_CANCELED) << name << ": and it was cancelled then";
}

class Cancellation : public ::testing::Test {
 protected:
  static constexpr wherry_options kOptions{.ring_bytes = 4096, .flags = WHERRY_WINDOWS, .reserved = 0};
  static constexpr std::size_t kBytes = 8192;

  void listen() {
    ASSERT_EQ(wherry_listen("wherry+shm://*:*", &kOptions, &listener_), 0);
    ASSERT_GT(wherry_listener_address(listener_, address_, sizeof address_), 0);
  }
  void meet() {
    listen();
    wherry_connecting connecting = WHERRY_NONE;
    ASSERT_EQ(wherry_start_connect(address_, &kOptions, WHERRY_TIMEOUT_DEFAULT, &connecting), 0);
    ASSERT_EQ(wherry_accept(listener_, kTimeout, &acceptor_), 0);
    ASSERT_EQ(wherry_try_finish(connecting, &connector_), 0);
    wherry_connecting_close(connecting);
  }
  void TearDown() override {
    wherry_stream_close(connector_);
    wherry_stream_close(acceptor_);
    wherry_listener_close(listener_);
  }

  wherry_listener listener_ = WHERRY_NONE;
  wherry_stream connector_ = WHERRY_NONE;
  wherry_stream acceptor_ = WHERRY_NONE;
  char address_[64] = "";
};

TEST_F(Cancellation, WaitsForCallsThatSetUpAndClose) {
  wherry_connecting connecting = WHERRY_NONE;
  expect_to_return("listen", [&] { listen(); });
  expect_to_return("accept nobody", [&] { EXPECT_EQ(wherry_accept(listener_, 1000, &acceptor_), -ETIMEDOUT); });
  expect_to_return("start_connect", [&] {
    EXPECT_EQ(wherry_start_connect(address_, &kOptions, WHERRY_TIMEOUT_DEFAULT, &connecting), 0);
  });
  expect_to_return("accept", [&] { EXPECT_EQ(wherry_accept(listener_, kTimeout, &acceptor_), 0); });
  expect_to_return("try_finish", [&] { EXPECT_EQ(wherry_try_finish(connecting, &connector_), 0); });
  expect_to_return("close an attempt", [&] { wherry_connecting_close(connecting); });
  expect_to_return("connect", [&] {
    wherry_stream stream = WHERRY_NONE;
    EXPECT_EQ(wherry_connect(address_, &kOptions, 1000, &stream), -ETIMEDOUT);
  });
  expect_to_return("close a stream", [&] { wherry_stream_close(connector_); });
  connector_ = WHERRY_NONE;
  expect_to_return("close a listener", [&] { wherry_listener_close(listener_); });
  listener_ = WHERRY_NONE;
}

TEST_F(Cancellation, WaitsForCallsThatMoveData) {
  meet();
  char byte = 'x';
  const auto much = std::vector<char>(100'000, 'x');
  expect_to_return("receive", [&] { EXPECT_EQ(wherry_receive(acceptor_, &byte, 1, 1000), -ETIMEDOUT); });
  expect_to_return("try_receive", [&] { EXPECT_EQ(wherry_try_receive(acceptor_, &byte, 1), -EAGAIN); });
  expect_to_return("wait_readable", [&] { EXPECT_EQ(wherry_wait_readable(acceptor_, 1000), -ETIMEDOUT); });
  expect_to_return("receive_descriptor", [&] { EXPECT_GE(wherry_receive_descriptor(acceptor_), 0); });
  expect_to_return("send_descriptor", [&] { EXPECT_GE(wherry_send_descriptor(connector_), 0); });
  expect_to_return("send", [&] { EXPECT_EQ(wherry_send(connector_, "x", 1, kTimeout), 1); });
  expect_to_return("receive_all", [&] { EXPECT_EQ(wherry_receive_all(acceptor_, &byte, 1, kTimeout), 1); });
  expect_to_return("a long send", [&] { EXPECT_GT(wherry_send(connector_, much.data(), much.size(), 1000), 1000); });
  expect_to_return("try_send", [&] { EXPECT_EQ(wherry_try_send(connector_, "x", 1), -EAGAIN); });
  expect_to_return("wait_writable", [&] { EXPECT_EQ(wherry_wait_writable(connector_, 1, 1000), -ETIMEDOUT); });
  expect_to_return("finish_sending", [&] { EXPECT_EQ(wherry_finish_sending(connector_), 0); });
}

TEST_F(Cancellation, WaitsForCallsOnWindows) {
  meet();
  auto* far = static_cast<unsigned char*>(std::aligned_alloc(4096, kBytes));
  std::uint64_t there = 0, mark = 0;
  void* start = nullptr;
  expect_to_return("register", [&] {
    EXPECT_EQ(wherry_register(acceptor_, far, kBytes, WHERRY_READ | WHERRY_WRITE, WHERRY_ANYWHERE, &there), 0);
  });
  expect_to_return("vwrite_to", [&] { EXPECT_EQ(wherry_vwrite_to(connector_, "x", 1, there, WHERRY_COMPLETE), 0); });
  expect_to_return("fence_mark", [&] { EXPECT_EQ(wherry_fence_mark(connector_, WHERRY_STARTED_HERE, &mark), 0); });
  expect_to_return("fence_wait", [&] { EXPECT_EQ(wherry_fence_wait(connector_, WHERRY_STARTED_HERE, mark, -1), 0); });
  expect_to_return("map", [&] { EXPECT_EQ(wherry_map(connector_, there, kBytes, WHERRY_READ, &start), 0); });
  expect_to_return("unmap", [&] { EXPECT_EQ(wherry_unmap(start, kBytes), 0); });
  expect_to_return("unregister", [&] { EXPECT_EQ(wherry_unregister(acceptor_, there, kBytes), 0); });
  std::free(far);
}

TEST_F(Cancellation, WaitsForCallsOnFramedStreams) {
  meet();
  wherry_framed from = WHERRY_NONE, to = WHERRY_NONE;
  const void* message = nullptr;
  std::size_t size = 0;
  void* room = nullptr;
  expect_to_return("open", [&] { EXPECT_EQ(wherry_framed_open(connector_, &from), 0); });
  ASSERT_EQ(wherry_framed_open(acceptor_, &to), 0);
  expect_to_return("receive", [&] { EXPECT_EQ(wherry_framed_receive(to, &message, &size, 1000), -ETIMEDOUT); });
  expect_to_return("try_receive", [&] { EXPECT_EQ(wherry_framed_try_receive(to, &message, &size), -EAGAIN); });
  expect_to_return("send", [&] { EXPECT_EQ(wherry_framed_send(from, "x", 1, kTimeout), 1); });
  expect_to_return("a full ring", [&] {
    while (wherry_framed_send(from, "0123456789", 10, 1000) == 10) continue;
  });
  expect_to_return("wait_writable", [&] { EXPECT_EQ(wherry_framed_wait_writable(from, 10, 1000), -ETIMEDOUT); });
  expect_to_return("reserve", [&] { EXPECT_EQ(wherry_framed_reserve(from, 10, &room), -EAGAIN); });
  expect_to_return("release", [&] { EXPECT_EQ(wherry_framed_release(from, &connector_), 0); });
  expect_to_return("close", [&] { wherry_framed_close(to); });
  acceptor_ = WHERRY_NONE;
}

TEST_F(Cancellation, WaitsForCallsOnPollers) {
  meet();
  wherry_poller poller = WHERRY_NONE;
  std::uint64_t ready = 0;
  expect_to_return("open", [&] { EXPECT_EQ(wherry_poller_open(&poller), 0); });
  expect_to_return("add", [&] { EXPECT_EQ(wherry_poller_add(poller, acceptor_, 1), 0); });
  expect_to_return("wait", [&] { EXPECT_EQ(wherry_poller_wait(poller, &ready, 1, 1'000'000), 0); });
  expect_to_return("interrupt", [&] { EXPECT_EQ(wherry_poller_interrupt(poller), 0); });
  expect_to_return("remove", [&] { EXPECT_EQ(wherry_poller_remove(poller, acceptor_), 0); });
  expect_to_return("close", [&] { wherry_poller_close(poller); });
}

TEST_F(Cancellation, WaitsForCallsOfPublishersAndSubscribers) {
  const wherry_publisher_options options{.pool_bytes = 4096, .flags = 0, .reserved = 0};
  wherry_publisher publisher = WHERRY_NONE;
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_loan loan = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  expect_to_return("open", [&] { EXPECT_EQ(wherry_publisher_open(&options, &publisher), 0); });
  expect_to_return("listen", [&] { EXPECT_EQ(wherry_publisher_listen(publisher, "wherry+shm://*:*"), 0); });
  ASSERT_GT(wherry_publisher_address(publisher, address_, sizeof address_), 0);
  expect_to_return("open a subscriber", [&] { EXPECT_EQ(wherry_subscriber_open(nullptr, &subscriber), 0); });
  expect_to_return("connect", [&] { EXPECT_EQ(wherry_subscriber_connect(subscriber, address_, 1000), -ETIMEDOUT); });
  expect_to_return("start_connect",
                   [&] { EXPECT_EQ(wherry_subscriber_start_connect(subscriber, address_, kTimeout), 0); });
  expect_to_return("admit", [&] { EXPECT_EQ(wherry_publisher_admit(publisher, 1, kTimeout), 1); });
  expect_to_return("take", [&] { EXPECT_EQ(wherry_subscriber_take(subscriber, 1'000'000, &message), -ETIMEDOUT); });
  expect_to_return("loan", [&] { EXPECT_EQ(wherry_publisher_loan(publisher, 4096, kTimeout, &loan), 0); });
  expect_to_return("publish", [&] { EXPECT_EQ(wherry_publisher_publish(publisher, &loan, kTimeout), 0); });
  expect_to_return("loan nothing",
                   [&] { EXPECT_EQ(wherry_publisher_loan(publisher, 4096, 1'000'000, &loan), -ETIMEDOUT); });
  expect_to_return("try_take", [&] { EXPECT_EQ(wherry_subscriber_try_take(subscriber, &message), 1); });
  expect_to_return("release", [&] { wherry_message_release(&message); });
  expect_to_return("close a subscriber", [&] { wherry_subscriber_close(subscriber); });
  expect_to_return("close a publisher", [&] { wherry_publisher_close(publisher); });
}

/// Cancels from another thread, whether the call is blocked or has not begun.
TEST_F(Cancellation, OfABlockedReceiverWaitsForWherryCancel) {
  meet();
  int64_t received = 0;
  Call call{.body = [&] {
    char byte = 0;
    received = wherry_receive(acceptor_, &byte, 1, WHERRY_FOREVER);
  }};
  pthread_t thread{};
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&thread, nullptr, run, &call), 0);
  ASSERT_EQ(pthread_cancel(thread), 0);
  ASSERT_EQ(wherry_cancel(acceptor_), 0);
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_TRUE(call.returned);
  EXPECT_EQ(received, -ECANCELED);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

}  // namespace
