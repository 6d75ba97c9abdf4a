// SPDX-License-Identifier: Apache-2.0
// No wake-up is lost, however a program waits: blocked in a call, in scif_poll, or in poll(2) on the bare descriptor.
// A lost one shows as a test that never ends.
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "arch/barrier.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/soak.hpp"
#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifSoak : public Scif {};

constexpr bool kUnderSanitizer = WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0;

/// How often something is tried: for seconds by default, longer in `make soak`.
int times(int sanitized, int otherwise, int soaked) {
  if (kUnderSanitizer) return sanitized;
  return soaking() ? soaked : otherwise;
}

std::uint32_t first_seed() {
  const char* set = std::getenv("WHERRY_TEST_SEED");
  const auto seed = set != nullptr ? static_cast<std::uint32_t>(std::strtoul(set, nullptr, 10)) : 0;
  std::printf("seed %u\n", seed);
  return seed;
}

char pattern(std::uint64_t position) { return static_cast<char>(position * 131 + (position >> 9)); }

class EpollSet {
 public:
  explicit EpollSet(int fd, short asked = POLLIN) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = static_cast<std::uint32_t>(asked), .data = {}};
    EXPECT_EQ(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), 0);
  }
  EpollSet(const EpollSet&) = delete;
  EpollSet& operator=(const EpollSet&) = delete;
  ~EpollSet() { ::close(epoll_); }
  void wait() const {
    epoll_event event{};
    while (::epoll_wait(epoll_, &event, 1, -1) != 1) continue;
  }

 private:
  int epoll_;
};

/// One end that moves `total` bytes in steps of random sizes and ways of waiting.
class Mover {
 public:
  Mover(scif_epd_t epd, std::uint32_t seed, std::uint64_t total) : epd_(epd), random_(seed), total_(total) {}

  bool send() {
    while (done_ < total_) {
      const auto n = static_cast<int>(std::min<std::uint64_t>(size(), total_ - done_));
      for (int i = 0; i < n; ++i) buffer_[i] = pattern(done_ + static_cast<std::uint64_t>(i));
      const int moved = scif_send(epd_, buffer_, n, way(POLLOUT));
      if (moved < 0 || (blocked_ && moved != n)) return false;
      done_ += static_cast<std::uint64_t>(moved);
    }
    return true;
  }

  bool receive() {
    while (done_ < total_) {
      const auto n = static_cast<int>(std::min<std::uint64_t>(size(), total_ - done_));
      const int moved = scif_recv(epd_, buffer_, n, way(POLLIN));
      if (moved < 0 || (blocked_ && moved != n)) return false;
      for (int i = 0; i < moved; ++i) {
        if (buffer_[i] != pattern(done_ + static_cast<std::uint64_t>(i))) return false;
      }
      done_ += static_cast<std::uint64_t>(moved);
    }
    return true;
  }

 private:
  std::uint64_t size() {
    switch (random_() % 4) {
      case 0:
        return 1;
      case 1:
        return 1 + random_() % 16;
      case 2:
        return 5000;
      default:
        return 1 + random_() % 5000;
    }
  }

  /// Waits in some way, and says with which flags to call then.
  int way(short event) {
    if (--steps_ <= 0) {
      steps_ = 1 + static_cast<int>(random_() % 200);
      way_ = random_() % 5;
    }
    blocked_ = way_ == 0;
    if (way_ == 1) events(epd_, event, -1);
    if (way_ == 2) kernel_events(epd_, event, -1);
    if (way_ == 3) EpollSet(epd_, event).wait();
    if (way_ == 4 && random_() % 64 == 0) kernel_events(epd_, event, -1);
    return blocked_ ? SCIF_SEND_BLOCK : 0;
  }

  scif_epd_t epd_;
  std::mt19937 random_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  int steps_ = 0;
  std::uint64_t way_ = 0;
  bool blocked_ = false;
  char buffer_[5000];
};

void run(std::uint32_t seed, std::uint64_t bytes, bool answered) {
  const Listening listening;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0 || !Mover(epd, seed * 2 + 1, bytes).send()) return false;
    return !answered || Mover(epd, seed * 2 + 2, bytes).receive();
  });
  const Epd epd(listening.accept());
  EXPECT_TRUE(Mover(epd, seed * 3 + 1, bytes).receive());
  if (answered) {
    EXPECT_TRUE(Mover(epd, seed * 3 + 2, bytes).send());
  }
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ScifSoak, MixedWaysOfWaitingLoseNoWakeUp) {
  const std::uint32_t seed = first_seed();
  const auto rounds = static_cast<std::uint32_t>(times(2, 4, 20));
  for (std::uint32_t round = 0; round < rounds; ++round) {
    run(seed + round, kUnderSanitizer ? 1'000'000 : 20'000'000, true);
  }
}

/// Now and then, so that the other side finds this one at any point of what it does: nothing, a moment, or asleep.
void pause_at_random(std::mt19937& random) {
  const auto kind = random() % 64;
  if (kind == 0) ::usleep(static_cast<useconds_t>(random() % 200));
  if (kind > 8) return;
  const std::int64_t end = steady_ns() + static_cast<std::int64_t>(random() % 4000);
  while (steady_ns() < end) continue;
}

/// One message to and fro: each must wake a side that waits in any of the ways, in turns of up to 60 messages, so that
/// habits form and break.
bool play(scif_epd_t epd, std::uint32_t seed, int rounds, bool first, int bytes) {
  std::mt19937 random(seed);
  std::vector<char> buffer(static_cast<std::size_t>(bytes));
  const EpollSet epoll(epd);
  std::uint32_t way = 0;
  int turn = 0;
  for (int i = 0; i < rounds; ++i) {
    if (--turn <= 0) {
      way = (random() >> 8) % 4;
      turn = 1 + static_cast<int>(random() % 60);
    }
    if (first && scif_send(epd, buffer.data(), bytes, SCIF_SEND_BLOCK) != bytes) return false;
    int got = 0;
    while (got < bytes) {
      if (way == 1) events(epd, SCIF_POLLIN, -1);
      if (way == 2) kernel_events(epd, POLLIN, -1);
      if (way == 3) epoll.wait();
      // Sometimes not all, so that the next wait is for what is there already.
      const int want = random() % 16 == 0 ? 1 + static_cast<int>(random() % (bytes - got)) : bytes - got;
      const int n = scif_recv(epd, buffer.data() + got, want, way == 0 ? SCIF_RECV_BLOCK : 0);
      if (n < 0) return false;
      got += n;
      if (random() % 64 == 0) way = random() % 4;
    }
    pause_at_random(random);
    if (!first && scif_send(epd, buffer.data(), bytes, SCIF_SEND_BLOCK) != bytes) return false;
  }
  return true;
}

void ping_pong(int rounds, int bytes) {
  const std::uint32_t seed = first_seed();
  const Listening listening;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    return scif_connect(epd, &to) > 0 && play(epd, seed + 7, rounds, true, bytes);
  });
  const Epd epd(listening.accept());
  EXPECT_TRUE(play(epd, seed + 8, rounds, false, bytes));
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ScifSoak, OneByteMessagesToAndFroLoseNoWakeUp) { ping_pong(times(10'000, 100'000, 500'000), 1); }

TEST_F(ScifSoak, MessagesReadInPiecesLoseNoWakeUp) { ping_pong(times(10'000, 50'000, 200'000), 16); }

TEST_F(ScifSoak, MessagesLargerThanTheQueueToAndFroLoseNoWakeUp) { ping_pong(times(1000, 10'000, 30'000), 5000); }

TEST_F(ScifSoak, ManyOneByteMessagesInABurstLoseNoWakeUp) {
  const Listening listening;
  constexpr int kMessages = kUnderSanitizer ? 100'000 : 3'000'000;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0) return false;
    for (int i = 0; i < kMessages; ++i) {
      char byte = pattern(static_cast<std::uint64_t>(i));
      if (scif_send(epd, &byte, 1, SCIF_SEND_BLOCK) != 1) return false;
    }
    return true;
  });
  const Epd epd(listening.accept());
  EXPECT_TRUE(Mover(epd, 5, kMessages).receive());
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ScifSoak, TwoThreadsThatPollOneEndpointLoseNoWakeUp) {
  constexpr int kMessages = kUnderSanitizer ? 10'000 : 100'000;
  const Listening listening;
  Child peer([&] {
    Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0) return false;
    std::mt19937 random(11);
    for (int i = 0; i < kMessages; ++i) {
      pause_at_random(random);
      if (send_text(epd, "x") != 1) return false;
    }
    return true;
  });
  const Epd epd(listening.accept());
  std::atomic<int> received{0};
  const auto take = [&](std::uint32_t seed) {
    std::mt19937 random(seed);
    // The end of the peer wakes both.
    while (true) {
      const short seen = events(epd, SCIF_POLLIN, -1);
      if (seen == SCIF_POLLHUP) return;
      if (random() % 32 == 0) ::usleep(static_cast<useconds_t>(random() % 100));
      received += static_cast<int>(receive_text(epd, 1, 0).size());
    }
  };
  std::thread other([&] { take(1); });
  take(2);
  other.join();
  EXPECT_EQ(received, kMessages);
  EXPECT_EQ(peer.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
