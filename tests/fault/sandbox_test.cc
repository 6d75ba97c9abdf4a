// SPDX-License-Identifier: Apache-2.0
// A process to which the kernel refuses what streams are otherwise waited for with, or with narrow limits: it waits by
// other means, with little work, and misses nothing; what cannot be made is an error that says why.
#include <sys/resource.h>

#include <ctime>
#include <functional>
#include <thread>

#include "tests/common/sanitizer.hpp"
#include "tests/common/seccomp.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

struct Narrowness {
  const char* name;
  bool (*begin)();  ///< in a process of its own, once it is connected
};

bool no_descriptors() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  return ::setrlimit(RLIMIT_NOFILE, &none) == 0;
}

constexpr std::array kNarrow{
    Narrowness{"NoPpoll", [] { return refuse({SYS_ppoll, SYS_poll}); }},
    Narrowness{"NoIoEvents",
               [] { return refuse({SYS_ppoll, SYS_poll, SYS_epoll_wait, SYS_epoll_pwait, SYS_select, SYS_pselect6}); }},
    Narrowness{"UnknownPpoll", [] { return refuse({SYS_ppoll, SYS_poll}, ENOSYS); }},
    Narrowness{"NoDescriptors", no_descriptors},
    Narrowness{"NoIoctl", [] { return refuse({SYS_ioctl}, ENOTTY); }},
};

/// How much of the time that `wait` took this thread worked. What it found there already, because others had the
/// processor until then, was not waited for.
double work_of(const std::function<void()>& wait) {
  const auto cpu = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double before = cpu();
  const std::int64_t start = steady_ns();
  wait();
  const std::int64_t took = steady_ns() - start;
  return took < 20'000'000 ? 0 : (cpu() - before) / static_cast<double>(took);
}

class Sandbox : public FaultTest, public ::testing::WithParamInterface<Narrowness> {
 protected:
  /// Connects with a child that runs `play` with its stream, and becomes narrow there; `answer` is this side.
  void expect(const std::function<bool(Stream&)>& play, const std::function<void(Stream&)>& answer) {
    Listener listener = listen(address());
    Child child([&] {
      Stream stream = connect(listener.local().to_string(), {}, kTimeout);
      (void)stream.receive_descriptor();
      return play(stream);
    });
    Stream stream = listener.accept(kTimeout);
    answer(stream);
    EXPECT_EQ(child.wait(), 0);
  }

  static constexpr std::byte kByte{42};
  static constexpr std::chrono::milliseconds kPause{60};
  static constexpr int kRounds = 4;
};

/// Each round the peer lets this side wait for a good while: the share of work in that is what is measured.
void send_after_pauses(Stream& stream, std::chrono::milliseconds pause, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    std::this_thread::sleep_for(pause);
    const std::byte byte{42};
    EXPECT_TRUE(stream.send(std::span(&byte, 1), kTimeout).ok());
    std::byte echo{};
    EXPECT_TRUE(stream.receive(std::span(&echo, 1), kTimeout).ok()) << "round " << i;
  }
}

TEST_P(Sandbox, ABlockedReceiveSleepsAndWakes) {
  expect(
      [&](Stream& stream) {
        if (!GetParam().begin()) return false;
        for (int i = 0; i < kRounds; ++i) {
          std::byte byte{};
          const std::uint64_t slept = stream.counters().receive_sleeps;
          const std::int64_t start = steady_ns();
          const double work = work_of([&] { (void)stream.receive(std::span(&byte, 1)); });
          const auto milliseconds = static_cast<std::uint64_t>((steady_ns() - start) / 1'000'000);
          // One a millisecond at most: also where a busy machine gives a loop little to work with.
          if (stream.counters().receive_sleeps - slept > milliseconds + 2) return false;
          if (byte != kByte || work > 0.5 || !stream.send(std::span(&byte, 1)).ok()) return false;
        }
        return true;
      },
      [&](Stream& stream) { send_after_pauses(stream, kPause, kRounds); });
}

TEST_P(Sandbox, APollerSleepsAndWakes) {
  if (WHERRY_ADDRESS_SANITIZER && GetParam().begin == no_descriptors)
    GTEST_SKIP() << "UBSan makes a pipe to look at an object";
  expect(
      [&](Stream& stream) {
        Poller poller;
        poller.add(stream, 7);
        if (!GetParam().begin()) return false;
        std::array<Poller::Token, 4> ready{};
        for (int i = 0; i < kRounds; ++i) {
          const Timeout timeout = i % 2 == 0 ? Timeout() : Timeout(kTimeout);
          const double work = work_of([&] {
            while (stream.peek().empty()) (void)poller.wait(ready, timeout);
          });
          if (work > 0.5 || !stream.consume(1).ok() || !stream.send(std::span(&kByte, 1)).ok()) return false;
        }
        return true;
      },
      [&](Stream& stream) { send_after_pauses(stream, kPause, kRounds); });
}

TEST_P(Sandbox, ATimeoutPassesAndADeathIsNoticed) {
  expect(
      [&](Stream& stream) {
        std::byte byte{};
        if (!GetParam().begin()) return false;
        if (stream.receive(std::span(&byte, 1), 3ms).error != ETIMEDOUT) return false;
        if (!stream.send(std::span(&kByte, 1), kTimeout).ok()) return false;
        return stream.receive(std::span(&byte, 1)).ended();
      },
      [&](Stream& stream) {
        std::byte byte{};
        EXPECT_TRUE(stream.receive(std::span(&byte, 1), kTimeout).ok());
        std::this_thread::sleep_for(5ms);
        stream.close();
      });
}

TEST_P(Sandbox, AListenerAccepts) {
  if (GetParam().begin == no_descriptors) GTEST_SKIP() << "who is accepted takes descriptors";
  Listener listener = listen(address());
  Child child([&] {
    std::byte byte{};
    if (!GetParam().begin()) return false;
    Stream stream = listener.accept(kTimeout);
    return stream.receive(std::span(&byte, 1), kTimeout).ok() && byte == kByte;
  });
  Stream stream = connect(listener.local().to_string(), {}, kTimeout);
  EXPECT_TRUE(stream.send(std::span(&kByte, 1), kTimeout).ok());
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Sandbox, ASubscriberSleepsAndWakes) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen(address());
  Child child([&] {
    Subscriber subscriber;
    subscriber.connect(publisher.local().to_string(), kTimeout);
    (void)subscriber.descriptor();
    if (!GetParam().begin()) return false;
    for (int i = 0; i < kRounds; ++i) {
      Message message;
      const double work = work_of([&] { (void)subscriber.take(message); });
      if (!message.held() || work > 0.5) return false;
    }
    Message none;
    return subscriber.take(none).ended();
  });
  publisher.admit(1, kTimeout);
  for (int i = 0; i < kRounds; ++i) {
    std::this_thread::sleep_for(kPause);
    Loan loan;
    ASSERT_TRUE(publisher.loan(loan, 1, kTimeout).ok());
    ASSERT_TRUE(publisher.publish(loan, kTimeout).ok());
  }
  publisher = Publisher();
  EXPECT_EQ(child.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(, Sandbox, ::testing::ValuesIn(kNarrow),
                         [](const auto& narrow) { return std::string(narrow.param.name); });

/// Expects EFBIG and its advice of `make`, in a process that may write files of at most `bytes`.
template <class Make>
void expect_too_large(rlim_t bytes, Make&& make) {
  Child child([&] {
    const rlimit most{.rlim_cur = bytes, .rlim_max = bytes};
    if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return false;
    try {
      make();
    } catch (const Error& error) {
      return error.code().value() == EFBIG && error.advice().find("ulimit -f") != std::string::npos;
    }
    return false;
  });
  EXPECT_EQ(child.wait(), 0) << "0: EFBIG, -1: a signal";
}

/// The kernel would end the process (SIGXFSZ).
TEST(FileSizeLimit, IsAnErrorThatSaysWhatToDo) {
  Listener listener = listen("wherry+shm://*:*");
  expect_too_large(4096, [&] { (void)start_connect(listener.local().to_string()); });
  expect_too_large(4096, [] {
    Publisher publisher;
    publisher.listen("wherry+shm://*:*");
  });
  expect_too_large(4096, [] {
    Listener own = listen("wherry+shm://*:*");
    (void)start_connect(own.local().to_string());
  });
}

TEST(FileSizeLimit, LeavesRoomForSmallerRings) {
  Child child([] {
    const rlimit most{.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return false;
    Listener listener = listen("wherry+shm://*:*", {.ring_bytes = 16 << 10});
    Connecting connecting = start_connect(listener.local().to_string(), {.ring_bytes = 16 << 10});
    Stream acceptor = listener.accept(kTimeout);
    Stream connector = std::move(*connecting.try_finish());
    std::byte byte{1};
    return acceptor.send(std::span(&byte, 1)).ok() && connector.receive(std::span(&byte, 1)).ok();
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
