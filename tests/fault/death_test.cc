// SPDX-License-Identifier: Apache-2.0
// A peer killed with SIGKILL at any moment: the survivor is told, after everything that had been published. How soon is
// measured (bench/standalone/death.cc), not tested: a test must not fail because a machine is busy.
#include <poll.h>

#include <cerrno>
#include <random>
#include <thread>

#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

class Death : public FaultTest {
 protected:
  /// A victim that connects to `listener` and does `act` with its stream until it is killed.
  template <class Act>
  [[nodiscard]] Child connecting_victim(const Listener& listener, StreamOptions options, Act act) {
    return Child([=, this, where = listener.local().to_string()] {
      Stream stream = connect(where, options, kTimeout);
      act(stream);
      scene_->ready = true;
      while (true) ::pause();
      return true;
    });
  }

  /// Sends the pattern in pieces of all sizes, and says after each how far it got.
  void send_for_ever(Stream& stream, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uint64_t sent = 0;
    while (true) {
      const std::size_t most = random() % 8 == 0 ? 20'000 : 200;
      const auto bytes = pattern_.bytes(1 + random() % most, sent);
      if (!stream.send(bytes).ok()) return;
      sent += bytes.size();
      scene_->accepted_bytes = sent;
      scene_->ready = true;
    }
  }

  void expect_a_reset_after(Stream& stream, std::uint64_t at_least) {
    std::uint64_t received = 0;
    const Result last = receive_to_the_last(stream, pattern_, received);
    noticed();
    EXPECT_EQ(last.error, ECONNRESET);
    EXPECT_GE(received, at_least);
  }
};

TEST_F(Death, InTheMiddleOfSendingEverythingAcceptedArrives) {
  std::mt19937_64 random(1);
  for (std::uint64_t round = 0; round < 40; ++round) {
    reset_scene();
    Listener listener = listen(address(), {.ring_bytes = round % 2 == 0 ? 4096U : 1U << 20});
    const Child victim = connecting_victim(listener, {}, [&](Stream& stream) { send_for_ever(stream, round); });
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 3000));
    std::uint64_t received = 0;
    const Result last = receive_to_the_last(stream, pattern_, received);
    noticed();
    EXPECT_EQ(last.error, ECONNRESET) << "round " << round;
    EXPECT_GE(received, scene_->accepted_bytes) << "round " << round;
  }
}

TEST_F(Death, OfASleeperWhileTheSurvivorSleepsInReceive) {
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    Listener listener = listen(address());
    const Child victim =
        connecting_victim(listener, {}, [&](Stream& stream) { (void)stream.send(pattern_.bytes(1000)); });
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, 3ms);
    expect_a_reset_after(stream, 1000);
    EXPECT_EQ(stream.send(pattern_.bytes(1)).error, EPIPE);
  }
}

TEST_F(Death, WhileTheSurvivorSleepsInSend) {
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    Listener listener = listen(address());
    const Child victim = connecting_victim(listener, {.ring_bytes = 4096}, [](Stream&) {});
    Stream stream = listener.accept(kTimeout);
    std::thread killer([&] {
      while (stream.counters().send_sleeps == 0) std::this_thread::sleep_for(50us);
      std::this_thread::sleep_for(3ms);
      kill_now(victim);
    });
    const Result result = stream.send(pattern_.bytes(10'000), kTimeout);
    noticed();
    killer.join();
    EXPECT_EQ(result.error, EPIPE);
    EXPECT_EQ(result.bytes, 4096U);
    std::vector<std::byte> buffer(1);
    EXPECT_EQ(stream.receive(buffer, kTimeout).error, ECONNRESET);
  }
}

TEST_F(Death, WhileTheSurvivorPollsEitherDescriptor) {
  for (const bool sending : {false, true}) {
    for (int round = 0; round < 10; ++round) {
      reset_scene();
      Listener listener = listen(address());
      const Child victim = connecting_victim(listener, {.ring_bytes = 4096}, [](Stream&) {});
      Stream stream = listener.accept(kTimeout);
      const auto bytes = pattern_.bytes(5000);
      std::vector<std::byte> buffer(10);
      if (sending) {
        EXPECT_EQ(stream.try_send(bytes).bytes, 4096U);
      } else {
        EXPECT_TRUE(stream.try_receive(buffer).would_block());
      }
      const Child killer = killer_of(victim, 3ms);
      Result result = Result::blocked();
      for (int tries = 0; tries < 3 && result.would_block(); ++tries) {
        ASSERT_TRUE(becomes_readable(sending ? stream.send_descriptor() : stream.receive_descriptor(), kTimeout));
        result = sending ? stream.try_send(bytes) : stream.try_receive(buffer);
      }
      noticed();
      EXPECT_EQ(result.error, sending ? EPIPE : ECONNRESET);
    }
  }
}

TEST_F(Death, WhileTheSurvivorNeverSleeps) {
  for (const bool sending : {false, true}) {
    reset_scene();
    Listener listener = listen(address());
    const Child victim = connecting_victim(listener, {.ring_bytes = 1 << 30}, [](Stream&) {});
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, 3ms);
    std::vector<std::byte> buffer(10);
    Result result = Result::blocked();
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    while (!result.failed() && std::chrono::steady_clock::now() < end) {
      result = sending ? stream.try_send(buffer) : stream.try_receive(buffer);
    }
    noticed();
    EXPECT_EQ(result.error, sending ? EPIPE : ECONNRESET);
  }
}

TEST_F(Death, WithBothDirectionsFull) {
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    Listener listener = listen(address(), {.ring_bytes = 4096});
    const Child victim = connecting_victim(listener, {.ring_bytes = 4096}, [&](Stream& stream) {
      while (stream.try_send(pattern_.bytes(1)).ok()) continue;
      while (stream.try_send(pattern_.bytes(1)).ok()) continue;
    });
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, 2ms);
    EXPECT_EQ(stream.send(pattern_.bytes(5000), kTimeout).error, EPIPE);
    noticed();
    std::vector<std::byte> buffer(5000);
    const Result rest = stream.receive_all(buffer, kTimeout);
    EXPECT_EQ(rest.error, ECONNRESET);
    EXPECT_EQ(rest.bytes, 4096U);
  }
}

TEST_F(Death, OfTheOneWhoAccepted) {
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    SharedValue<std::atomic<std::uint32_t>> port;
    const Child victim([&] {
      Listener listener = listen(address());
      *port = *listener.local().port;
      Stream stream = listener.accept(kTimeout);
      send_for_ever(stream, 5);
      return true;
    });
    while (*port == 0) std::this_thread::yield();
    Stream stream = connect("wherry+shm://0:" + std::to_string(*port), {.ring_bytes = 8192}, kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(300 * round));
    std::uint64_t received = 0;
    EXPECT_EQ(receive_to_the_last(stream, pattern_, received).error, ECONNRESET);
    noticed();
    EXPECT_GE(received, scene_->accepted_bytes);
  }
}

TEST_F(Death, AfterFinishingIsTheEnd) {
  Listener listener = listen(address());
  Child victim = connecting_victim(listener, {}, [&](Stream& stream) {
    (void)stream.send(pattern_.bytes(500));
    (void)stream.finish_sending();
  });
  Stream stream = listener.accept(kTimeout);
  while (!scene_->ready) std::this_thread::yield();
  kill_now(victim);
  victim.wait();
  std::uint64_t received = 0;
  EXPECT_TRUE(receive_to_the_last(stream, pattern_, received).ended());
  EXPECT_EQ(received, 500U);
}

// Bytes accepted by send are in the receiver's memory: the sender may die before it is accepted or anything is read.
TEST_F(Death, BeforeAnybodyReadOneByte) {
  Listener listener = listen(address());
  Child victim = connecting_victim(listener, {}, [&](Stream& stream) { (void)stream.send(pattern_.bytes(900'000)); });
  Stream stream = listener.accept(kTimeout);
  while (!scene_->ready) std::this_thread::yield();
  kill_now(victim);
  victim.wait();
  expect_a_reset_after(stream, 900'000);
}

}  // namespace
}  // namespace wherry::fault
