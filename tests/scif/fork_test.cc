// SPDX-License-Identifier: Apache-2.0
// Registered memory and fork: a child has memory of its own, and its parent's windows go on. Each test is a process of
// its own, as registered memory stays what it is after the test.
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

}  // namespace
}  // namespace wherry::scif_test
