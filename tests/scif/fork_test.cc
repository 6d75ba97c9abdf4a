// SPDX-License-Identifier: Apache-2.0
// Registered memory and fork: a child has memory of its own, and its parent's windows go on. Each of these tests is a
// process of its own, as registered memory stays what it is after the test. And endpoints that a child uses.
#include <atomic>
#include <memory>

#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifFork : public Scif {};

constexpr std::size_t kBytes = 64 * kPage;

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

std::unique_ptr<char, Free> heap_memory() {
  void* memory = nullptr;
  EXPECT_EQ(::posix_memalign(&memory, kPage, kBytes), 0);
  return std::unique_ptr<char, Free>(static_cast<char*>(memory));
}

bool a_child_has_its_own(char* memory) {
  const Pair pair;
  fill(memory, kBytes, 1);
  const off_t offset = scif_register(pair.connector, memory, kBytes, 0, kRw, 0);
  EXPECT_GT(offset, 0);
  const SharedValue<std::atomic<int>> phase;
  Child child([&] {
    while (*phase != 1) ::usleep(100);
    if (!is_filled(memory, kBytes, 1)) return false;  // as it was when it was forked
    fill(memory, kBytes, 2);
    *phase = 2;
    while (*phase != 3) ::usleep(100);
    const auto more = heap_memory();
    fill(more.get(), kBytes, 5);
    return is_filled(memory, kBytes, 2) && is_filled(more.get(), kBytes, 5);
  });
  fill(memory, kBytes, 3);
  *phase = 1;
  while (*phase != 2) ::usleep(100);
  EXPECT_TRUE(is_filled(memory, kBytes, 3)) << "what the child writes is the child's";
  std::vector<char> bytes(kBytes);
  EXPECT_EQ(scif_vreadfrom(pair.acceptor, bytes.data(), kBytes, offset, 0), 0);
  EXPECT_TRUE(is_filled(bytes.data(), kBytes, 3)) << "the window is the parent's";
  fill(bytes.data(), kBytes, 4);
  EXPECT_EQ(scif_vwriteto(pair.acceptor, bytes.data(), kBytes, offset, 0), 0);
  EXPECT_TRUE(is_filled(memory, kBytes, 4));
  *phase = 3;
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(is_filled(memory, kBytes, 4));
  return !::testing::Test::HasFailure();
}

TEST_F(ScifFork, AChildHasHeapMemoryOfItsOwnAndTheParentsWindowsGoOn) {
  Child process([] {
    const auto memory = heap_memory();
    return a_child_has_its_own(memory.get());
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifFork, AChildHasAStackOfItsOwnAndTheParentsWindowsGoOn) {
  Child process([] {
    alignas(kPage) char memory[kBytes];
    return a_child_has_its_own(memory);
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifFork, AChildSeesNothingOfWhatTheParentWritesNext) {
  Child process([] {
    const auto memory = heap_memory();
    const Pair pair;
    EXPECT_GT(scif_register(pair.connector, memory.get(), kBytes, 0, kRw, 0), 0);
    for (int round = 1; round <= 20; ++round) {
      fill(memory.get(), kBytes, round);
      Child child([&] { return is_filled(memory.get(), kBytes, round); });
      fill(memory.get(), kBytes, round + 1);
      EXPECT_EQ(child.wait(), 0) << round;
    }
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Which AddressSanitizer would tell.
TEST_F(ScifFork, OfAProcessThatFreedRegisteredMemoryReadsNoneThere) {
  Child process([] {
    const Pair pair;
    auto memory = heap_memory();
    const off_t offset = scif_register(pair.connector, memory.get(), kBytes, 0, kRw, 0);
    EXPECT_GT(offset, 0);
    EXPECT_EQ(scif_unregister(pair.connector, offset, kBytes), 0);
    memory.reset();
    Child child([] { return true; });
    EXPECT_EQ(child.wait(), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

[[gnu::noinline]] void register_some_stack(scif_epd_t epd) {
  alignas(kPage) char memory[kBytes];
  fill(memory, kBytes, 1);
  const off_t offset = scif_register(epd, memory, kBytes, 0, kRw, 0);
  EXPECT_GT(offset, 0);
  EXPECT_EQ(scif_unregister(epd, offset, kBytes), 0);
}

/// With its frames, and those of fork, where registered memory was.
[[gnu::noinline]] int fork_on_that_stack(int depth) {
  volatile char frame[kPage / 2];
  frame[0] = static_cast<char>(depth);
  if (depth > 0) return fork_on_that_stack(depth - 1) + (frame[0] == depth ? 0 : 1);
  Child child([] {
    volatile int sum = 0;
    for (int i = 0; i < 1000; ++i) sum = sum + std::to_string(i).size() > 0 ? 1 : 0;
    return sum == 1;
  });
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  return child.wait() + (text.size() == 2890 ? 0 : 1);
}

TEST_F(ScifFork, AForkOnAStackThatWasRegisteredGoesWell) {
  Child process([] {
    const Pair pair;
    for (int round = 0; round < 10; ++round) {
      register_some_stack(pair.connector);
      EXPECT_EQ(fork_on_that_stack(20), 0);
    }
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Where a child's copy of the registered memory is left out by MADV_DONTFORK, and when.
enum class DontFork : std::uint8_t { never, before, after };

/// Moves bytes both ways between the windows that it inherited, and from and to memory of its own.
bool uses_inherited_windows(scif_epd_t epd, off_t near, off_t far) {
  constexpr auto kHalf = static_cast<off_t>(kBytes / 2);
  std::vector<char> bytes(kBytes);
  bool good = scif_writeto(epd, near, kBytes / 2, far, SCIF_RMA_SYNC) == 0;
  good = good && scif_vreadfrom(epd, bytes.data(), kBytes / 2, far, 0) == 0 && is_filled(bytes.data(), kBytes / 2, 1);
  fill(bytes.data(), kBytes, 7);
  good = good && scif_vwriteto(epd, bytes.data() + kBytes / 2, kBytes / 2, far + kHalf, 0) == 0;
  good = good && scif_readfrom(epd, near + kHalf, kBytes / 2, far + kHalf, 0) == 0;
  int mark = 0;
  good = good && scif_fence_mark(epd, SCIF_FENCE_INIT_SELF, &mark) == 0 && scif_fence_wait(epd, mark) == 0;
  return good &&
         scif_fence_signal(epd, near, 11, far, 12, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE) == 0;
}

std::uint64_t word_at(const char* memory) {
  std::uint64_t word = 0;
  std::memcpy(&word, memory, sizeof word);
  return word;
}

bool a_child_uses_the_windows(DontFork dont_fork) {
  const Pair pair;
  const Pages own(kBytes / kPage);
  const Pages peers(kBytes / kPage);
  fill(own, kBytes, 1);
  fill(peers, kBytes, 2);
  const auto advise = [&] { EXPECT_EQ(::madvise(own, kBytes, MADV_DONTFORK), 0); };
  if (dont_fork == DontFork::before) advise();
  const off_t near = scif_register(pair.connector, own, kBytes, 0, kRw, 0);
  if (dont_fork == DontFork::after) advise();
  const off_t far = scif_register(pair.acceptor, peers, kBytes, 0, kRw, 0);
  EXPECT_GT(near, 0);
  EXPECT_GT(far, 0);
  Child child([&] {
    unsigned char there = 0;
    const bool has_copy = ::mincore(own, kPage, &there) == 0;
    EXPECT_EQ(has_copy, dont_fork == DontFork::never) << "as any memory of which that is said";
    EXPECT_TRUE(uses_inherited_windows(pair.connector, near, far)) << std::strerror(errno);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
  // The windows are the memory of the process that registered them.
  EXPECT_EQ(word_at(own), 11U);
  EXPECT_EQ(word_at(peers), 12U);
  std::vector<char> expected(kBytes);
  fill(expected.data(), kBytes, 1);
  EXPECT_EQ(std::memcmp(peers + 8, expected.data() + 8, kBytes / 2 - 8), 0);
  fill(expected.data(), kBytes, 7);
  EXPECT_EQ(std::memcmp(peers + kBytes / 2, expected.data() + kBytes / 2, kBytes / 2), 0);
  EXPECT_EQ(std::memcmp(own + kBytes / 2, expected.data() + kBytes / 2, kBytes / 2), 0);
  // And the parent's calls and fences go on.
  EXPECT_EQ(scif_writeto(pair.connector, near, kBytes, far, SCIF_RMA_SYNC), 0);
  int mark = 0;
  EXPECT_EQ(scif_fence_mark(pair.acceptor, SCIF_FENCE_INIT_PEER, &mark), 0);
  EXPECT_EQ(scif_fence_wait(pair.acceptor, mark), 0);
  return !::testing::Test::HasFailure();
}

TEST_F(ScifFork, AChildMayUseTheWindowsThatItInheritedInAnyOrderOfDontforkAndRegister) {
  for (const DontFork dont_fork : {DontFork::never, DontFork::before, DontFork::after}) {
    Child process([&] { return a_child_uses_the_windows(dont_fork); });
    EXPECT_EQ(process.wait(), 0) << "with " << static_cast<int>(dont_fork);
  }
}

TEST_F(ScifFork, AChildMapsWhatThePeerRegistered) {
  Child process([] {
    const Pair pair;
    const Pages peers(4);
    fill(peers, 4 * kPage, 1);
    const off_t far = scif_register(pair.acceptor, peers, 4 * kPage, 0, kRw, 0);
    auto* const mapped = static_cast<char*>(scif_mmap(nullptr, 4 * kPage, kRw, 0, pair.connector, far));
    Child child([&] {
      auto* const own = static_cast<char*>(scif_mmap(nullptr, 4 * kPage, kRw, 0, pair.connector, far));
      if (own == SCIF_MMAP_FAILED || !is_filled(own, 4 * kPage, 1)) return false;
      own[0] = 'x';
      return scif_munmap(own, 4 * kPage) == 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(peers[0], 'x');
    EXPECT_EQ(mapped[0], 'x') << "the parent's mapping is there still";
    EXPECT_EQ(scif_unregister(pair.acceptor, far, 4 * kPage), 0);
    mapped[1] = 'y';
    EXPECT_EQ(peers[1], 'y');
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifFork, WhatAChildCannotDoIsNotSaidToBeThePeersDeath) {
  Child process([] {
    const Pair pair;
    const Pages own(1);
    const off_t near = scif_register(pair.connector, own, kPage, 0, kRw, 0);
    Child child([&] {
      const Pages more(1);
      EXPECT_FAILS(ENOTSUP, static_cast<int>(scif_register(pair.connector, more, kPage, 0, kRw, 0)));
      EXPECT_FAILS(ENOTSUP, scif_unregister(pair.connector, near, kPage));
      const Pair another;
      EXPECT_GT(scif_register(another.connector, more, kPage, 0, kRw, 0), 0) << "on an endpoint of its own";
      return !::testing::Test::HasFailure();
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(scif_unregister(pair.connector, near, kPage), 0) << "nor did it";
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Of an endpoint that was opened, and perhaps bound, before the fork.
void both_connect(const Epd& epd) {
  const Listening listening;
  scif_portID to = listening.port;
  const SharedValue<std::atomic<bool>> done;
  Child child([&] {
    if (scif_connect(epd, &to) <= 0 || send_text(epd, "child") != 5) return false;
    while (!*done) ::usleep(100);
    return receive_text(epd, 2) == "to" && scif_close(epd) == 0;
  });
  const Epd childs(listening.accept());
  EXPECT_EQ(receive_text(childs, 5), "child");
  set_nonblocking(epd, true);
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  const Epd parents(listening.accept());
  EXPECT_GT(scif_connect(epd, &to), 0) << std::strerror(errno);
  EXPECT_EQ(send_text(epd, "parent"), 6);
  EXPECT_EQ(receive_text(parents, 6), "parent");
  *done = true;
  EXPECT_EQ(send_text(childs, "to"), 2);
  EXPECT_EQ(child.wait(), 0);
  await_hang_up(childs);
  EXPECT_EQ(send_text(parents, "still"), 5);
  EXPECT_EQ(receive_text(epd, 5), "still");
}

TEST_F(ScifFork, AChildMayConnectAnEndpointOpenedBeforeAndTheParentAsWell) { both_connect(Epd()); }

TEST_F(ScifFork, AChildMayConnectAnEndpointBoundBeforeAndTheParentAsWell) {
  const Epd epd;
  EXPECT_EQ(scif_bind(epd, 2000), 2000);
  both_connect(epd);
}

TEST_F(ScifFork, AChildMayBindAnEndpointOpenedBeforeAndTheParentAsWell) {
  const Epd epd;
  Child child([&] { return scif_bind(epd, 2000) == 2000 && scif_listen(epd, 1) == 0; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(scif_bind(epd, 2001), 2001);
}

TEST_F(ScifFork, AChildMayListenWithAnEndpointBoundBefore) {
  const Epd epd;
  const int port = scif_bind(epd, 0);
  Child child([&] {
    if (scif_listen(epd, 1) != 0) return false;
    scif_portID peer{};
    scif_epd_t made = -1;
    return scif_accept(epd, &peer, &made, SCIF_ACCEPT_SYNC) == 0 && send_text(made, "hello") == 5;
  });
  const Epd other;
  scif_portID to{.node = 0, .port = static_cast<std::uint16_t>(port)};
  while (scif_connect(other, &to) < 0) ASSERT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(receive_text(other, 5), "hello");
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
