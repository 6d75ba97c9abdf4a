// SPDX-License-Identifier: Apache-2.0
// Kill -9 at any point of any call of the peer: this side's calls end with the error that is specified, at once, and
// nothing is left behind.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "base/open_descriptors.hpp"
#include "tests/scif/spaces.hpp"

namespace wherry::scif_test {
namespace {

class ScifDeath : public Scif {};

constexpr std::size_t kBytes = Spaces::kBytes;
constexpr off_t kSpare = 0x300000;
constexpr std::int64_t kAtOnce = 100'000'000;
/// A call that takes this long gave up by itself, or had no processor: seldom.
constexpr std::int64_t kGivesUp = 9'900'000'000;

/// What this process holds of the kernel's.
struct Held {
  Held() : descriptors(open_descriptors()) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("memfd:wherry") == std::string::npos) continue;
      const std::size_t dash = line.find('-');
      shared_bytes += std::stoul(line.substr(dash + 1), nullptr, 16) - std::stoul(line.substr(0, dash), nullptr, 16);
    }
  }
  bool operator==(const Held&) const = default;
  std::size_t descriptors = 0;
  std::size_t shared_bytes = 0;
};

/// One side of a connection, and one call on it as programs make it. A call returns what SCIF's function did, but for
/// `poll`: -1 and ECONNRESET is what it makes of a hang-up.
struct Side {
  scif_epd_t epd;
  char* pages;
  off_t own, peers;
  std::mt19937 random;
  char buffer[3 * kPage]{};

  int flags() { return static_cast<int>(random() % 2); }
  off_t somewhere(off_t base) { return base + static_cast<off_t>(random() % (kBytes - sizeof buffer)); }
  std::size_t size() { return 1 + random() % sizeof buffer; }
};

struct Call {
  const char* name;
  int (*make)(Side&);
};

int poll_for(Side& side, short asked) {
  scif_pollepd polled{side.epd, asked, 0};
  if (scif_poll(&polled, 1, -1) < 0) return -1;
  if ((polled.revents & SCIF_POLLHUP) == 0) return scif_recv(side.epd, side.buffer, sizeof side.buffer, 0);
  errno = ECONNRESET;
  return -1;
}

int bare_poll(Side& side) {
  if ((kernel_events(side.epd, POLLIN, -1) & POLLHUP) == 0) {
    return scif_recv(side.epd, side.buffer, sizeof side.buffer, 0);
  }
  errno = ECONNRESET;
  return -1;
}

int mark_and_wait(Side& side, int initiator) {
  int mark = 0;
  return scif_fence_mark(side.epd, initiator, &mark) == 0 ? scif_fence_wait(side.epd, mark) : -1;
}

int map_and_unmap(Side& side) {
  void* mapped = scif_mmap(nullptr, kBytes, kRw, 0, side.epd, side.peers);
  if (mapped == SCIF_MMAP_FAILED) return -1;
  static_cast<char*>(mapped)[side.random() % kBytes] = 'm';
  return scif_munmap(mapped, kBytes);
}

int register_and_unregister(Side& side) {
  if (scif_register(side.epd, side.pages, 4 * kPage, kSpare, kRw, SCIF_MAP_FIXED) != kSpare) return -1;
  return scif_unregister(side.epd, kSpare, 4 * kPage);
}

constexpr int kMarkSelf = SCIF_FENCE_INIT_SELF;
constexpr int kMarkPeer = SCIF_FENCE_INIT_PEER;

constexpr Call kCalls[] = {
    {"send", [](Side& s) { return scif_send(s.epd, s.buffer, sizeof s.buffer, SCIF_SEND_BLOCK); }},
    {"send, not blocking",
     [](Side& s) {
       const int sent = scif_send(s.epd, s.buffer, 100, 0);
       if (sent == 0) std::this_thread::yield();
       return sent;
     }},
    {"recv", [](Side& s) { return scif_recv(s.epd, s.buffer, 1000, SCIF_RECV_BLOCK); }},
    {"poll", [](Side& s) { return poll_for(s, SCIF_POLLIN); }},
    {"poll(2)", bare_poll},
    {"register and unregister", register_and_unregister},
    {"mmap and munmap", map_and_unmap},
    {"writeto",
     [](Side& s) { return scif_writeto(s.epd, s.somewhere(s.own), s.size(), s.somewhere(s.peers), 8 * s.flags()); }},
    {"readfrom",
     [](Side& s) { return scif_readfrom(s.epd, s.somewhere(s.own), s.size(), s.somewhere(s.peers), 8 * s.flags()); }},
    {"vwriteto", [](Side& s) { return scif_vwriteto(s.epd, s.buffer, s.size(), s.somewhere(s.peers), 4 * s.flags()); }},
    {"vreadfrom",
     [](Side& s) { return scif_vreadfrom(s.epd, s.buffer, s.size(), s.somewhere(s.peers), 4 * s.flags()); }},
    {"fence_mark and fence_wait, own", [](Side& s) { return mark_and_wait(s, kMarkSelf); }},
    {"fence_mark and fence_wait, the peer's", [](Side& s) { return mark_and_wait(s, kMarkPeer); }},
    {"fence_signal",
     [](Side& s) {
       return scif_fence_signal(s.epd, s.own, 1, s.peers, 1,
                                (s.flags() != 0 ? kMarkSelf : kMarkPeer) | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE);
     }},
};

/// A child that makes one call again and again, from before it is known to be there.
class Victim {
 public:
  Victim(const Listening& listening, const Call& call, unsigned seed)
      : child_([&, seed] {
          const Epd epd;
          scif_portID to = listening.port;
          if (scif_connect(epd, &to) <= 0) return false;
          const Pages pages(kBytes / kPage);
          Side side{epd, pages, kFar, kNear, std::mt19937(seed)};
          if (scif_register(epd, pages, kBytes, kFar, kRw, SCIF_MAP_FIXED) != kFar) return false;
          if (send_text(epd, "v") != 1 || receive_text(epd, 1) != "s") return false;
          while (call.make(side) >= 0) continue;
          return false;
        }) {}
  void kill() const { child_.kill(); }

 private:
  Child child_;
};

/// Makes the call until it fails, while the peer, busy with a call of its own, is killed at some moment. Returns how
/// long it took from the kernel's news of the death.
std::int64_t survive(const Listening& listening, char* pages, const Call& victims, const Call& own, unsigned seed) {
  const Victim victim(listening, victims, seed);
  const Epd epd(listening.accept());
  Side side{epd, pages, kNear, kFar, std::mt19937(seed + 1)};
  EXPECT_EQ(scif_register(epd, pages, kBytes, kNear, kRw, SCIF_MAP_FIXED), kNear);
  EXPECT_EQ(receive_text(epd, 1), "v");
  EXPECT_EQ(send_text(epd, "s"), 1);
  std::int64_t told_at = 0;
  std::thread killer([&, delay = side.random() % 3000] {
    ::usleep(static_cast<useconds_t>(delay));
    victim.kill();
    await_hang_up(epd);
    told_at = steady_ns();
  });
  errno = 0;
  while (own.make(side) >= 0) continue;
  const int error = errno;
  const std::int64_t ended_at = steady_ns();
  killer.join();
  EXPECT_EQ(error, ECONNRESET) << std::strerror(error) << " from " << own.name << " at the death of a peer in "
                               << victims.name;
  return ended_at - told_at;
}

TEST_F(ScifDeath, OfAPeerInAnyCallEndsAnyCallWithEconnresetAtOnceAndLeavesNothing) {
  const Listening listening;
  const Pages pages(kBytes / kPage);
  survive(listening, pages, kCalls[0], kCalls[1], 1);  // makes what a process has once,
  events(listening.epd, SCIF_POLLIN);                  // and what a thread waits by
  const Held before;
  unsigned seed = 1;
  for (const Call& own : kCalls) {
    std::int64_t best = INT64_MAX;
    for (const Call& victims : kCalls) best = std::min(best, survive(listening, pages, victims, own, ++seed));
    EXPECT_LT(best, kAtOnce) << own.name;
  }
  const Held after;
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.shared_bytes, before.shared_bytes);
}

TEST_F(ScifDeath, OfAPeerWhoseMemoryTheKernelCopiesGivesEconnresetAndNotEfault) {
  constexpr std::size_t kShared = std::size_t{1} << 20;
  std::mt19937 random(1);
  const Listening listening;
  std::vector<char> source(kShared);
  for (int round = 0; round < 30; ++round) {
    const Child victim([&] {
      const Epd epd;
      scif_portID to = listening.port;
      if (scif_connect(epd, &to) <= 0) return false;
      void* shared = ::mmap(nullptr, kShared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (scif_register(epd, shared, kShared, kFar, kRw, SCIF_MAP_FIXED) != kFar) return false;
      if (send_text(epd, "v") != 1) return false;
      while (true) ::pause();
    });
    const Epd epd(listening.accept());
    ASSERT_EQ(receive_text(epd, 1), "v");
    if (scif_vwriteto(epd, source.data(), kShared, kFar, 0) != 0) GTEST_SKIP() << "the kernel refuses";
    std::thread killer([&, delay = random() % 3000] {
      ::usleep(static_cast<useconds_t>(delay));
      victim.kill();
    });
    constexpr int kSignal = SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE;
    const std::size_t bytes = round % 2 == 0 ? kShared : 8;
    while (scif_vwriteto(epd, source.data(), bytes, kFar, 0) == 0 &&
           scif_fence_signal(epd, 0, 0, kFar, 1, kSignal) == 0) {
    }
    EXPECT_EQ(errno, ECONNRESET) << std::strerror(errno);
    killer.join();
  }
}

/// A child that connects to this process's listener again and again.
class Connector {
 public:
  explicit Connector(const Listening& listening)
      : child_([&] {
          while (true) {
            const Epd epd;
            scif_portID to = listening.port;
            if (scif_connect(epd, &to) > 0) send_text(epd, "hello");
          }
          return false;
        }) {}
  void kill() const { child_.kill(); }

 private:
  Child child_;
};

TEST_F(ScifDeath, OfAConnectorAtAnyPointLeavesTheListenerAtWork) {
  std::mt19937 random(1);
  const Listening listening;
  events(listening.epd, SCIF_POLLIN);  // makes what this thread waits by, if it does
  std::optional<Held> before;
  for (int round = 0; round < 40; ++round) {
    const SharedValue<std::atomic<bool>> killed;
    const Connector victim(listening);
    const Child next([&] {
      while (!*killed) ::usleep(100);
      const Epd epd;
      scif_portID to = listening.port;
      return scif_connect(epd, &to) > 0 && send_text(epd, "next!") == 5 && receive_text(epd, 1) == "x";
    });
    std::thread killer([&, delay = random() % 5000] {
      ::usleep(static_cast<useconds_t>(delay));
      victim.kill();
      *killed = true;
    });
    while (true) {
      const Epd epd(listening.accept());
      const std::string heard = receive_text(epd, 5);
      EXPECT_TRUE(heard.empty() || heard == "hello" || heard == "next!") << heard;
      if (heard == "next!") break;
    }
    killer.join();
    if (!before) before.emplace();
    EXPECT_EQ(Held(), *before);
  }
}

/// A child with a listener, on which it accepts or not.
class Listener {
 public:
  Listener(std::uint16_t port, bool accepts)
      : child_([=, this] {
          while (true) {
            const Epd listener;
            if (scif_bind(listener, port) != port || scif_listen(listener, 4) != 0) return false;
            *ready_ = true;
            if (!accepts) ::pause();  // until it is killed
            for (int i = 0; i < 10; ++i) {
              scif_portID peer{};
              scif_epd_t made = -1;
              if (scif_accept(listener, &peer, &made, SCIF_ACCEPT_SYNC) == 0) scif_close(made);
            }
          }
        }) {
    while (!*ready_) ::usleep(100);
  }
  void kill() const { child_.kill(); }

 private:
  SharedValue<std::atomic<bool>> ready_;
  Child child_;
};

TEST_F(ScifDeath, OfAListenerAtAnyPointRefusesConnectorsAtOnceAndItsPortIsFree) {
  constexpr std::uint16_t kPort = 2000;
  std::mt19937 random(1);
  events(Epd(), SCIF_POLLIN);  // makes what this thread waits by
  std::optional<Held> before;
  std::array<std::vector<std::int64_t>, 2> took;
  for (int round = 0; round < 40; ++round) {
    const Listener victim(kPort, round % 2 == 0);
    std::atomic<std::int64_t> killed_at{INT64_MAX};
    std::thread killer([&, delay = random() % 5000] {
      ::usleep(static_cast<useconds_t>(delay));
      killed_at = steady_ns();
      victim.kill();
    });
    scif_portID to{.node = 0, .port = kPort};
    while (true) {
      const bool is_killed = steady_ns() > killed_at;
      const Epd epd;
      errno = 0;
      if (scif_connect(epd, &to) > 0) continue;
      EXPECT_EQ(errno, ECONNREFUSED) << std::strerror(errno);
      if (is_killed || round % 2 == 1) break;
    }
    killer.join();
    took[round % 2].push_back(steady_ns() - killed_at);
    Epd epd;
    while (scif_bind(epd, kPort) != kPort)
      ::usleep(100);  // the kernel tells of the end of a connection before its rest
    epd.close();
    if (!before) before.emplace();
    EXPECT_EQ(Held(), *before);
  }
  for (std::vector<std::int64_t>& times : took) {
    std::sort(times.begin(), times.end());
    EXPECT_LT(times.front(), kAtOnce);
    EXPECT_LT(times[times.size() * 3 / 4], kGivesUp);
  }
}

}  // namespace
}  // namespace wherry::scif_test
