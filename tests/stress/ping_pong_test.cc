// SPDX-License-Identifier: Apache-2.0
// Question and answer, each side asleep when the other's message comes: where a lost wake-up is for good. In one-way
// traffic the next message repairs it; here there is no next message.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "arch/pause.hpp"
#include "base/child_process.hpp"
#include "base/open_descriptors.hpp"
#include "base/scoped_environment.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/watchdog.hpp"

namespace wherry::stress {
namespace {

/// One player: it answers every message with one. The server never sleeps, so that its message comes just when the
/// client goes to sleep, at all moments of that; two that sleep would always find each other asleep for long.
class Player {
 public:
  Player(Stream& stream, std::uint64_t seed, Progress& progress)
      : stream_(stream), random_(static_cast<std::minstd_rand::result_type>(seed)), progress_(progress) {}

  /// False: something failed, or an answer was wrong.
  bool play(bool serves, std::uint64_t rounds) {
    sleeps_ = !serves;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (serves && !say(round)) return false;
      if (!hear(round)) return false;
      if (!serves && !say(round)) return false;
      progress_.operations.store(round + 1, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  bool say(std::uint64_t round) {
    // Zero to a few microseconds: what the client takes from its message to its sleep.
    for (std::uint64_t i = random_() % 64; i > 0 && !sleeps_; --i) arch::pause();
    const auto bytes = std::as_bytes(std::span(&round, 1));
    progress_.doing = Doing::send;
    return stream_.send(bytes).ok();
  }

  bool hear(std::uint64_t round) {
    std::uint64_t heard = 0;
    const auto buffer = std::as_writable_bytes(std::span(&heard, 1));
    for (std::size_t got = 0; got < sizeof heard;) {
      const Result result = receive_somehow(buffer.subspan(got));
      if (result.failed() || result.ended()) return false;
      got += result.bytes;
    }
    return heard == round;
  }

  Result receive_somehow(std::span<std::byte> buffer) {
    if (!sleeps_) return look_for_a_while(buffer);
    progress_.doing = Doing::receive;
    if (random_() % 2 == 0) return stream_.receive(buffer);
    const Result result = stream_.try_receive(buffer);
    if (!result.would_block()) return result;
    progress_.doing = Doing::polling;
    (void)becomes_readable(stream_.receive_descriptor(), std::chrono::hours(1));
    return result;
  }

  /// Lets another process have the core when nothing comes: there may be one core only.
  Result look_for_a_while(std::span<std::byte> buffer) {
    progress_.doing = Doing::try_receive;
    Result result = stream_.try_receive(buffer);
    for (int i = 0; i < 1000 && result.would_block(); ++i) result = stream_.try_receive(buffer);
    if (result.would_block()) std::this_thread::yield();
    return result;
  }

  Stream& stream_;
  std::minstd_rand random_;
  Progress& progress_;
  bool sleeps_ = true;
};

class PingPong : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::uint64_t rounds() { return options().operations / 50; }

  ScopedEnvironment spin_{"WHERRY_SPIN", "0"};  // The client goes to sleep at once.
  SharedValue<std::array<Progress, 2>> progress_;
};

using PingPongThreads = PingPong;
using PingPongProcesses = PingPong;

TEST_P(PingPongThreads, NoWakeUpIsLost) {
  Listener listener = listen(std::string("wherry+").append(GetParam()).append("://*:*"));
  Connecting connecting = start_connect(listener.local().to_string());
  Stream acceptor = listener.accept(kConnectTimeout);
  Stream connector = std::move(connecting.try_finish().value());
  const Watchdog watchdog({{"server", &(*progress_)[0]}, {"client", &(*progress_)[1]}}, [] {});
  std::thread client([&] { EXPECT_TRUE(Player(connector, options().seed, (*progress_)[1]).play(false, rounds())); });
  EXPECT_TRUE(Player(acceptor, options().seed + 1, (*progress_)[0]).play(true, rounds()));
  client.join();
}

TEST_P(PingPongProcesses, NoWakeUpIsLost) {
  Listener listener = listen(std::string("wherry+").append(GetParam()).append("://*:*"));
  Child client([&] {
    Stream stream = connect(listener.local().to_string(), {}, kConnectTimeout);
    return Player(stream, options().seed, (*progress_)[1]).play(false, rounds());
  });
  Stream stream = listener.accept(kConnectTimeout);
  const Watchdog watchdog({{"server", &(*progress_)[0]}, {"client", &(*progress_)[1]}}, [&] { client.kill(); });
  EXPECT_TRUE(Player(stream, options().seed + 1, (*progress_)[0]).play(true, rounds()));
  EXPECT_EQ(client.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(, PingPongThreads, ::testing::Values("inproc"));
INSTANTIATE_TEST_SUITE_P(, PingPongProcesses, ::testing::Values("shm"));

}  // namespace
}  // namespace wherry::stress
