// SPDX-License-Identifier: Apache-2.0
// Millions of random operations in all call forms and sizes, with either peer dozing at random moments: no lost wake-up
// (the watchdog's to find), no lost or altered byte (every byte depends on its position).
#include <gtest/gtest.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <thread>

#include "base/child_process.hpp"
#include "base/scoped_environment.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/watchdog.hpp"

namespace wherry::stress {
namespace {

struct Case {
  const char* name;
  const char* fabric;
  std::size_t ring;
  double share;  ///< of the operations, for each of the two tests
  const char* split = "256K";
};

/// What one process or thread does with its end: sends, receives, or both.
struct EndProgress {
  Progress sending;
  Progress receiving;
};

class StreamStress : public ::testing::TestWithParam<Case> {
 protected:
  StreamStress() : split_("WHERRY_SPLIT", GetParam().split) {
    std::printf("--seed=%" PRIu64 " --operations=%" PRIu64 "\n", options().seed, options().operations);
  }

  [[nodiscard]] static std::uint64_t operations() {
    return static_cast<std::uint64_t>(static_cast<double>(options().operations) * GetParam().share);
  }
  [[nodiscard]] static StreamOptions ring() { return {.ring_bytes = GetParam().ring}; }
  [[nodiscard]] static std::string address() {
    return std::string("wherry+").append(GetParam().fabric).append("://*:*");
  }

  /// Runs `body` and turns what it throws into a failed test. From any thread.
  static void report(const char* who, const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << who << ": " << error.what() << "; --seed=" << options().seed;
      std::fflush(nullptr);
      std::_Exit(1);  // The other side waits for this one.
    }
  }

  void send(Stream& stream, Progress& progress, std::uint64_t seed, std::uint64_t count) const {
    report("sender", [&] { (void)Sending(stream, pattern_, seed, progress).run(count); });
  }
  void receive(Stream& stream, Progress& progress, std::uint64_t seed) const {
    report("receiver", [&] { (void)Receiving(stream, pattern_, seed, progress).run(); });
  }

  void print_rate(std::chrono::steady_clock::time_point start, const EndProgress& one, const EndProgress& other) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::uint64_t operations = 0;
    std::uint64_t sleeps = 0;
    for (const Progress* p : {&one.sending, &one.receiving, &other.sending, &other.receiving}) {
      operations += p->operations;
      sleeps += p->sleeps;
    }
    std::printf("%" PRIu64 " operations, %" PRIu64 " sleeps, %.1f s\n", operations, sleeps, seconds);
  }

  const Pattern pattern_{options().seed};
  ScopedEnvironment split_;
  SharedValue<EndProgress> connector_;
  SharedValue<EndProgress> acceptor_;
};

TEST_P(StreamStress, OneWay) {
  Listener listener = listen(address(), ring());
  Connecting connecting = start_connect(listener.local().to_string(), ring());
  Stream acceptor = listener.accept(kConnectTimeout);
  Stream connector = std::move(connecting.try_finish().value());
  const auto start = std::chrono::steady_clock::now();
  const Watchdog watchdog({{"sender", &connector_->sending}, {"receiver", &acceptor_->receiving}}, [] {});
  std::thread sender([&] { send(connector, connector_->sending, 2 * options().seed, operations()); });
  receive(acceptor, acceptor_->receiving, 2 * options().seed + 1);
  sender.join();
  EXPECT_EQ(connector_->sending.bytes, acceptor_->receiving.bytes);
  print_rate(start, *connector_, *acceptor_);
}

TEST_P(StreamStress, BothWays) {
  Listener listener = listen(address(), ring());
  Connecting connecting = start_connect(listener.local().to_string(), ring());
  Stream acceptor = listener.accept(kConnectTimeout);
  Stream connector = std::move(connecting.try_finish().value());
  const auto start = std::chrono::steady_clock::now();
  const Watchdog watchdog({{"connector's sender", &connector_->sending},
                           {"acceptor's receiver", &acceptor_->receiving},
                           {"acceptor's sender", &acceptor_->sending},
                           {"connector's receiver", &connector_->receiving}},
                          [] {});
  std::vector<std::thread> threads;
  threads.emplace_back([&] { send(connector, connector_->sending, 2 * options().seed, operations() / 2); });
  threads.emplace_back([&] { receive(acceptor, acceptor_->receiving, 2 * options().seed + 1); });
  threads.emplace_back([&] { send(acceptor, acceptor_->sending, 3 * options().seed, operations() / 2); });
  threads.emplace_back([&] { receive(connector, connector_->receiving, 3 * options().seed + 1); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(connector_->sending.bytes, acceptor_->receiving.bytes);
  EXPECT_EQ(acceptor_->sending.bytes, connector_->receiving.bytes);
  print_rate(start, *connector_, *acceptor_);
}

INSTANTIATE_TEST_SUITE_P(, StreamStress,
                         ::testing::Values(Case{"inproc_4K", "inproc", 4096, 0.125},
                                           Case{"inproc_64K", "inproc", 65536, 0.125},
                                           Case{"inproc_1M", "inproc", 1 << 20, 0.125},
                                           Case{"inproc_16M", "inproc", 16 << 20, 0.125},
                                           Case{"inproc_put_4K", "inproc-put", 4096, 0.04},
                                           Case{"inproc_put_64K", "inproc-put", 65536, 0.04},
                                           Case{"inproc_put_1M", "inproc-put", 1 << 20, 0.04},
                                           Case{"inproc_put_16M", "inproc-put", 16 << 20, 0.04}),
                         [](const auto& test) { return std::string(test.param.name); });

class ProcessStress : public StreamStress {
 protected:
  /// The peer in a process of its own: receives, and sends too if `both_ways`.
  [[nodiscard]] Child peer(const std::string& where, bool both_ways) {
    return Child([=, this] {
      Stream stream = connect(where, ring(), kConnectTimeout);
      std::thread sender([&] {
        if (both_ways) send(stream, connector_->sending, 3 * options().seed, operations() / 2);
      });
      receive(stream, connector_->receiving, 2 * options().seed + 1);
      sender.join();
      return true;
    });
  }
};

TEST_P(ProcessStress, OneWay) {
  Listener listener = listen(address(), ring());
  Child child = peer(listener.local().to_string(), false);
  Stream stream = listener.accept(kConnectTimeout);
  const auto start = std::chrono::steady_clock::now();
  const Watchdog watchdog({{"sender", &acceptor_->sending}, {"receiver", &connector_->receiving}},
                          [&] { child.kill(); });
  send(stream, acceptor_->sending, 2 * options().seed, operations());
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(acceptor_->sending.bytes, connector_->receiving.bytes);
  print_rate(start, *connector_, *acceptor_);
}

TEST_P(ProcessStress, BothWays) {
  Listener listener = listen(address(), ring());
  Child child = peer(listener.local().to_string(), true);
  Stream stream = listener.accept(kConnectTimeout);
  const auto start = std::chrono::steady_clock::now();
  const Watchdog watchdog({{"acceptor's sender", &acceptor_->sending},
                           {"connector's receiver", &connector_->receiving},
                           {"connector's sender", &connector_->sending},
                           {"acceptor's receiver", &acceptor_->receiving}},
                          [&] { child.kill(); });
  std::thread receiver([&] { receive(stream, acceptor_->receiving, 3 * options().seed + 1); });
  send(stream, acceptor_->sending, 2 * options().seed, operations() / 2);
  receiver.join();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(acceptor_->sending.bytes, connector_->receiving.bytes);
  EXPECT_EQ(connector_->sending.bytes, acceptor_->receiving.bytes);
  print_rate(start, *connector_, *acceptor_);
}

INSTANTIATE_TEST_SUITE_P(, ProcessStress,
                         ::testing::Values(Case{"shm_4K", "shm", 4096, 0.125}, Case{"shm_64K", "shm", 65536, 0.125},
                                           Case{"shm_1M", "shm", 1 << 20, 0.125},
                                           Case{"shm_16M", "shm", 16 << 20, 0.125},
                                           Case{"shm_64K_split", "shm", 65536, 0.125, "2K"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace wherry::stress
