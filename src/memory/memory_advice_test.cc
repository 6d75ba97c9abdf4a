// SPDX-License-Identifier: Apache-2.0
// The advice for memory by madvise and mlock still holds after it was exposed.
#include "memory/memory_advice.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "memory/arena.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;

std::span<std::byte> map_pages(std::size_t count) {
  void* start = ::mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(start), count * kPage};
}

/// Returns the flags in /proc/self/smaps of the mapping at that address.
std::set<std::string> flags_of(const std::byte* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t start = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) is_it = start <= wanted && wanted < end;
    if (!is_it || line.rfind("VmFlags:", 0) != 0) continue;
    std::istringstream words(line.substr(8));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

/// Returns those of them that a program asks for: MADV_DONTFORK, MADV_DONTDUMP and mlock.
std::set<std::string> asked_flags_of(const std::byte* address) {
  std::set<std::string> asked;
  const auto flags = flags_of(address);
  for (const char* flag : {"dc", "dd", "lo"}) {
    if (flags.contains(flag)) asked.insert(flag);
  }
  return asked;
}

// By a system call: sanitizers replace mlock by a function without effect.
bool lock(std::span<std::byte> memory) { return ::syscall(SYS_mlock, memory.data(), memory.size()) == 0; }

struct Asked {
  bool dont_fork;
  bool dont_dump;
  bool locked;
};

class MemoryAdviceOf : public ::testing::TestWithParam<std::size_t> {
 protected:
  void holds_after_exposing(const Asked& asked) {
    const auto all = map_pages(GetParam() + 4);
    const auto memory = all.subspan(2 * kPage, GetParam() * kPage);
    memory[0] = std::byte{1};
    if (asked.dont_fork) ::madvise(memory.data(), memory.size(), MADV_DONTFORK);
    if (asked.dont_dump) ::madvise(memory.data(), memory.size(), MADV_DONTDUMP);
    if (asked.locked && !lock(memory)) GTEST_SKIP() << "no memory may be locked here";
    const auto before = asked_flags_of(memory.data());
    ASSERT_EQ(before.size(), std::size_t{asked.dont_fork} + asked.dont_dump + asked.locked);
    const auto around = asked_flags_of(all.data());
    const auto exposed = Arena::instance().expose(memory);
    EXPECT_EQ(asked_flags_of(memory.data()), before);
    EXPECT_EQ(asked_flags_of(&memory.back()), before);
    EXPECT_EQ(asked_flags_of(all.data()), around) << "of the pages beside it";
    EXPECT_EQ(asked_flags_of(&all.back()), around);
    EXPECT_EQ(memory[0], std::byte{1});
    ::munmap(all.data(), all.size());
  }
};

TEST_P(MemoryAdviceOf, AnyKindHoldsAfterItIsExposed) {
  for (const bool dont_fork : {false, true}) {
    for (const bool dont_dump : {false, true}) {
      for (const bool locked : {false, true}) {
        SCOPED_TRACE(testing::Message() << dont_fork << dont_dump << locked);
        holds_after_exposing({.dont_fork = dont_fork, .dont_dump = dont_dump, .locked = locked});
      }
    }
  }
}

TEST_P(MemoryAdviceOf, PartOfAMappingLeavesTheRestAsItWas) {
  const auto memory = map_pages(GetParam() + 4);
  ASSERT_EQ(::madvise(memory.data(), memory.size(), MADV_DONTFORK), 0);
  const auto exposed = Arena::instance().expose(memory.subspan(kPage, GetParam() * kPage));
  for (const std::size_t at : {std::size_t{0}, kPage, (GetParam() + 1) * kPage - 1, (GetParam() + 1) * kPage}) {
    EXPECT_EQ(asked_flags_of(&memory[at]), std::set<std::string>{"dc"}) << at / kPage;
  }
  ::munmap(memory.data(), memory.size());
}

INSTANTIATE_TEST_SUITE_P(Pages, MemoryAdviceOf, ::testing::Values(1, 2, 600));

}  // namespace
}  // namespace wherry::memory
