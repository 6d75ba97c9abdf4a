// SPDX-License-Identifier: Apache-2.0
// Small messages of four processes on one host to one on another, while the fabric and the cable fail in all ways that
// a connection survives: none lost, altered or doubled.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <wherry/framed.hpp>

#include "arch/barrier.hpp"
#include "base/child_process.hpp"
#include "base/scoped_environment.hpp"
#include "base/two_hosts.hpp"
#include "fabric/modules.hpp"
#include "tests/common/soak.hpp"
#include "tests/stress/options.hpp"

namespace wherry::stress {
namespace {

constexpr std::size_t kSenders = 4;
constexpr std::uint64_t kMessages = 10'000'000, kSoakMessages = 100'000'000;

struct Trouble {
  const char* what;
  std::uint32_t host;
  const char* begin;
  const char* end;
  std::chrono::milliseconds time;
};

constexpr const char* kLoss =
    "nft 'add table inet test; add chain inet test input { type filter hook input priority 0; }; "
    "add rule inet test input meta l4proto tcp numgen random mod 100 < 2 drop'";
constexpr std::array kTroubles{
    Trouble{"a slow cable", 1, "tc qdisc add dev far0 root tbf rate 40mbit burst 32kb latency 50ms",
            "tc qdisc del dev far0 root", std::chrono::seconds(1)},
    Trouble{"a cut of 1 s", 0, "ip link set near0 down", "ip link set near0 up", std::chrono::seconds(1)},
    Trouble{"lost packets", 0, kLoss, "nft delete table inet test", std::chrono::seconds(1)},
    Trouble{"lost acknowledgements", 1, kLoss, "nft delete table inet test", std::chrono::seconds(1)},
    Trouble{"a cut of 3 s", 1, "ip link set far0 down", "ip link set far0 up", std::chrono::seconds(3)},
};

/// Words: the sender, the number of the message, up to five of anything, and a checksum of all these.
class NumberedMessage {
 public:
  static constexpr std::size_t kMostWords = 8;

  static std::span<const std::uint64_t> make(std::array<std::uint64_t, kMostWords>& words, std::uint64_t sender,
                                             std::uint64_t number, std::minstd_rand& random) {
    const std::size_t count = 3 + random() % (kMostWords - 2);
    words[0] = sender;
    words[1] = number;
    for (std::size_t i = 2; i < count - 1; ++i) words[i] = random() * number;
    words[count - 1] = checksum(std::span(words).first(count - 1));
    return std::span(words).first(count);
  }

  /// Throws std::runtime_error unless this is that message.
  static void check(std::span<const std::byte> bytes, std::uint64_t sender, std::uint64_t number) {
    std::array<std::uint64_t, kMostWords> words{};
    const std::size_t count = bytes.size() / sizeof(std::uint64_t);
    if (bytes.size() % sizeof(std::uint64_t) != 0 || count < 3 || count > kMostWords) fail("length", number);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    if (words[count - 1] != checksum(std::span(words).first(count - 1))) fail("checksum", number);
    if (words[0] != sender) fail("sender", number);
    if (words[1] != number) fail("number", number);
  }

  static std::uint64_t sender_of(std::span<const std::byte> bytes) {
    std::uint64_t sender = 0;
    std::memcpy(&sender, bytes.data(), std::min(bytes.size(), sizeof sender));
    return sender;
  }

 private:
  static std::uint64_t checksum(std::span<const std::uint64_t> words) {
    return std::accumulate(words.begin(), words.end(), std::uint64_t{1}, [](std::uint64_t sum, std::uint64_t word) {
      return ((sum ^ word) * 0x9E37'79B9'7F4A'7C15) ^ (sum >> 29);
    });
  }
  [[noreturn]] static void fail(const char* what, std::uint64_t number) {
    throw std::runtime_error(std::string("message ") + std::to_string(number) + " has a wrong " + what);
  }
};

class NetworkStress : public ::testing::Test {
 protected:
  struct Shared {
    std::array<std::atomic<std::uint64_t>, kSenders> received{};  ///< by accepted stream
    std::atomic<bool> failed{false};
  };

  void SetUp() override {
    if (&wherry_fabric_ofi == nullptr || sanitized()) GTEST_SKIP() << "without libfabric, or under a sanitizer";
    try {
      hosts_.emplace();
    } catch (const std::runtime_error& refused) {
      GTEST_SKIP() << refused.what();
    }
  }

  [[nodiscard]] static std::uint64_t each() { return (soaking() ? kSoakMessages : kMessages) / kSenders; }

  /// Half of the senders have faults of their own, and half publish many messages at once.
  bool send_all(std::uint64_t sender) {
    hosts_->enter(1);
    const bool is_faulty = sender % 2 == 0, holds = sender < kSenders / 2;
    const std::string faults = "short=5,reorder=5,spurious=20,seed=" + std::to_string(options().seed + sender);
    const ScopedEnvironment set("WHERRY_FAULTS", faults.c_str());
    const std::string to = std::string("wherry+") + (is_faulty ? "faulty+" : "") + "ofi://0:5000";
    FramedStream out(connect(to, {.ring_bytes = 65536}, kConnectTimeout));
    std::minstd_rand random(static_cast<unsigned>(options().seed + sender));
    std::array<std::uint64_t, NumberedMessage::kMostWords> words{};
    for (std::uint64_t number = 0; number < each(); ++number) {
      if (holds && number % 64 == 0) out.hold();
      if (const Result sent = out.send(NumberedMessage::make(words, sender, number, random)); !sent.ok()) {
        throw std::runtime_error("message " + std::to_string(number) + " was not sent: error " +
                                 std::to_string(sent.error));
      }
      if (holds && number % 64 == random() % 64 && !out.flush().ok()) throw std::runtime_error("flush failed");
    }
    return out.close(kConnectTimeout).ok();
  }

  void receive_all(FramedStream in, std::size_t stream) {
    std::optional<std::uint64_t> sender;
    std::uint64_t number = 0;
    for (;;) {
      const Received received = in.receive();
      if (received.result.ended()) break;
      if (!received) throw std::runtime_error("receive: error " + std::to_string(received.result.error));
      if (!sender) sender = NumberedMessage::sender_of(received.message);
      NumberedMessage::check(received.message, *sender, number++);
      shared_->received.at(stream).store(number, std::memory_order_relaxed);
    }
    if (number != each()) throw std::runtime_error("the last messages are missing");
  }

  bool receive_from_all() {
    hosts_->enter(0);
    const ScopedEnvironment faults("WHERRY_FAULTS", "spurious=20,seed=9");
    Listener listener = listen("wherry+faulty+ofi://*:5000", {.ring_bytes = 65536});
    std::vector<std::thread> threads;
    for (std::size_t stream = 0; stream < kSenders; ++stream) {
      threads.emplace_back([this, stream, in = FramedStream(listener.accept(kConnectTimeout))]() mutable {
        tells_of_failure("receiver", [&] {
          receive_all(std::move(in), stream);
          return true;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return !shared_->failed;
  }

  template <class Body>
  bool tells_of_failure(const char* who, Body body) {
    try {
      if (body()) return true;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s; seed %llu\n", who, error.what(), static_cast<unsigned long long>(options().seed));
    }
    shared_->failed = true;
    return false;
  }

  [[nodiscard]] std::uint64_t received() const {
    return std::accumulate(shared_->received.begin(), shared_->received.end(), std::uint64_t{0});
  }
  /// Waits until that many messages have come, or something has failed.
  void wait_for(std::uint64_t count) const {
    while (received() < count && !shared_->failed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void disturb(const Trouble& trouble) {
    if (!hosts_->run(trouble.host, trouble.begin)) {
      std::printf("without %s, which cannot be made here\n", trouble.what);
      return;
    }
    const std::uint64_t before = received();
    std::this_thread::sleep_for(trouble.time);
    EXPECT_TRUE(hosts_->run(trouble.host, trouble.end)) << trouble.end;
    std::printf("%s: %llu messages meanwhile\n", trouble.what, static_cast<unsigned long long>(received() - before));
  }

  const ScopedEnvironment lives_{"WHERRY_HOST_TIMEOUT", "60000"};  // on a busy machine a cut is longer
  std::optional<TwoHosts> hosts_;
  SharedValue<Shared> shared_;
};

TEST_F(NetworkStress, NothingIsLostAlteredOrDoubled) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(options().seed));
  Child receiver([&] { return tells_of_failure("receiver", [&] { return receive_from_all(); }); });
  std::deque<Child> senders;
  for (std::uint64_t sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] { return tells_of_failure("sender", [&] { return send_all(sender); }); });
  }
  const std::uint64_t all = each() * kSenders;
  for (std::size_t i = 0; i < kTroubles.size(); ++i) {
    wait_for(all * (2 * i + 1) / (2 * kTroubles.size()));
    disturb(kTroubles.at(i));
  }
  for (Child& sender : senders) EXPECT_EQ(sender.wait(), 0);
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_EQ(received(), all);
}

}  // namespace
}  // namespace wherry::stress
