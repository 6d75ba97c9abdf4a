// SPDX-License-Identifier: Apache-2.0
// Many endpoints in one process, many processes, and many threads.
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "arch/barrier.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifMany : public Scif {};

constexpr std::size_t kPairs = 500;
constexpr off_t kWindows = 256;

/// In a process of its own, so that its thousand endpoints and their memory are gone afterwards.
bool a_thousand_work() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<Pair> pairs(kPairs);
  Pages pages(kWindows);
  for (const Pair& pair : pairs) {
    for (const scif_epd_t epd : {static_cast<int>(pair.connector), static_cast<int>(pair.acceptor)}) {
      for (off_t i = 0; i < kWindows; ++i) {
        if (scif_register(epd, pages.at(i * kStep), kPage, i * kStep, kRw, SCIF_MAP_FIXED) != i * kStep) return false;
      }
    }
  }
  std::vector<char> bytes(kWindows * kPage);
  int seed = 0;
  for (const Pair& pair : pairs) {
    fill(bytes.data(), bytes.size(), ++seed);
    if (scif_vwriteto(pair.connector, bytes.data(), bytes.size(), 0, 0) != 0) return false;
    if (!is_filled(pages, bytes.size(), seed)) return false;
    if (send_text(pair.acceptor, "hello") != 5 || receive_text(pair.connector, 5) != "hello") return false;
  }
  return !::testing::Test::HasFailure();
}

TEST_F(ScifMany, AThousandEndpointsWith256WindowsEachWork) {
  Child process([] { return a_thousand_work(); });
  EXPECT_EQ(process.wait(), 0);
}

#if WHERRY_ADDRESS_SANITIZER || WHERRY_THREAD_SANITIZER
constexpr int kProcesses = 16;
#else
constexpr int kProcesses = 60;
#endif
constexpr int kRounds = 30;
constexpr std::size_t kBytes = 16 * kPage;

struct Request {
  std::int32_t process;
  std::int32_t seed;
};

/// One of many: shows `seed` in its own window, writes the next into its part of the server's, and asks for the next
/// but one in return.
bool be_a_client(scif_portID to, int number) {
  const Epd epd;
  const Pages pages(2 * kBytes / kPage);
  while (scif_connect(epd, &to) <= 0) {
    if (errno != ECONNREFUSED) return false;  // a listener may be busy for longer than a connector waits
  }
  if (scif_register(epd, pages, 2 * kBytes, 0, kRw, SCIF_MAP_FIXED) != 0) return false;
  if (receive_text(epd, 2) != "go") return false;
  for (int round = 0; round < kRounds; ++round) {
    Request request{number, number * 1000 + 3 * round};
    fill(pages, kBytes, request.seed);
    fill(pages.at(kBytes), kBytes, request.seed + 1);
    if (scif_writeto(epd, kBytes, kBytes, number * static_cast<off_t>(kBytes), 0) != 0) return false;
    if (scif_send(epd, &request, sizeof request, SCIF_SEND_BLOCK) != sizeof request) return false;
    if (receive_text(epd, 1) != "d" || !is_filled(pages, kBytes, request.seed + 2)) return false;
  }
  return true;
}

TEST_F(ScifMany, SixtyProcessesExchangeMessagesAndRmaWithOne) {
  Listening listening(kProcesses);
  std::vector<Child> clients;
  for (int i = 0; i < kProcesses; ++i) clients.emplace_back([&, i] { return be_a_client(listening.port, i); });
  const Pages pages(kProcesses * kBytes / kPage);
  std::vector<Epd> epds;
  std::vector<scif_pollepd> polled;
  for (int i = 0; i < kProcesses; ++i) {
    epds.emplace_back(listening.accept());
    polled.push_back({epds.back(), SCIF_POLLIN, 0});
    ASSERT_EQ(scif_register(epds.back(), pages, kProcesses * kBytes, 0, kRw, SCIF_MAP_FIXED), 0);
    ASSERT_EQ(send_text(epds.back(), "go"), 2);
  }
  std::vector<char> bytes(kBytes);
  for (int served = 0; served < kProcesses * kRounds;) {
    ASSERT_GT(scif_poll(polled.data(), static_cast<unsigned>(polled.size()), -1), 0);
    for (const scif_pollepd& entry : polled) {
      if (entry.revents != SCIF_POLLIN) continue;
      Request request{};
      ASSERT_EQ(scif_recv(entry.epd, &request, sizeof request, SCIF_RECV_BLOCK), static_cast<int>(sizeof request));
      ASSERT_EQ(scif_vreadfrom(entry.epd, bytes.data(), kBytes, 0, 0), 0);
      ASSERT_TRUE(is_filled(bytes.data(), kBytes, request.seed));
      ASSERT_TRUE(is_filled(pages.at(static_cast<std::size_t>(request.process) * kBytes), kBytes, request.seed + 1));
      fill(bytes.data(), kBytes, request.seed + 2);
      ASSERT_EQ(scif_vwriteto(entry.epd, bytes.data(), kBytes, 0, 0), 0);
      ASSERT_EQ(send_text(entry.epd, "d"), 1);
      ++served;
    }
    polled.erase(std::remove_if(polled.begin(), polled.end(),
                                [](const scif_pollepd& entry) { return (entry.revents & SCIF_POLLHUP) != 0; }),
                 polled.end());
  }
  for (Child& client : clients) EXPECT_EQ(client.wait(), 0);
}

/// One thread's part of everything at once: memory and offsets of its own, on endpoints that all share.
bool call_everything(const Pair& pair, char* pages, int number, std::atomic<bool>& ended) {
  const off_t own = off_t{16} * number * kStep;
  char* const memory = pages + own;
  std::vector<char> bytes(2 * kPage);
  for (int i = 0; !ended; ++i) {
    if (scif_register(pair.connector, memory, 2 * kPage, own, kRw, SCIF_MAP_FIXED) != own) return false;
    fill(bytes.data(), bytes.size(), i);
    if (scif_vwriteto(pair.acceptor, bytes.data(), bytes.size(), own, SCIF_RMA_ORDERED) != 0) return false;
    int mark = 0;
    if (scif_fence_mark(pair.acceptor, SCIF_FENCE_INIT_SELF, &mark) != 0) return false;
    if (scif_fence_wait(pair.acceptor, mark) != 0) return false;
    std::fill(bytes.begin(), bytes.end(), 0);
    if (scif_vreadfrom(pair.acceptor, bytes.data(), bytes.size(), own, 0) != 0) return false;
    if (!is_filled(bytes.data(), bytes.size(), i)) return false;
    void* const mapped = scif_mmap(nullptr, kPage, kRw, 0, pair.acceptor, own);
    if (mapped == SCIF_MMAP_FAILED || scif_munmap(mapped, kPage) != 0) return false;
    if (scif_fence_signal(pair.acceptor, 0, 0, own, 7, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE) != 0) return false;
    if (events(pair.connector, SCIF_POLLIN) != 0) return false;  // nothing is sent to it
    if (scif_unregister(pair.connector, own, 2 * kPage) != 0) return false;
  }
  return true;
}

TEST_F(ScifMany, ThreadsCallEveryFunctionOnTheSameEndpointsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kMessages = 300;
  const Pages pages(16 * kThreads);
  const Pair pair;
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(call_everything(pair, pages, i, ended)); });
  }
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) EXPECT_EQ(send_text(pair.connector, std::string(5000, 'x')), 5000);
  });
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(receive_text(pair.acceptor, 5000), std::string(5000, 'x'));
  sender.join();
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace wherry::scif_test
