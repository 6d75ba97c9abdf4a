// SPDX-License-Identifier: Apache-2.0
#include "memory/populate.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "memory/arena.hpp"
#include "memory/store_guard.hpp"
#include "tests/common/refused_userfaultfd.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;

/// The sizes make is_there() use different methods.
class IsThere : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] std::span<std::byte> map(int flags, int file) const {
    void* const start = ::mmap(nullptr, GetParam(), PROT_READ | PROT_WRITE, flags, file, 0);
    return {static_cast<std::byte*>(start), GetParam()};
  }
  static void unmap(std::span<std::byte> memory) { ::munmap(memory.data(), memory.size()); }
};

INSTANTIATE_TEST_SUITE_P(Sizes, IsThere, ::testing::Values(2 * kPage, 64 * kPage, 4096 * kPage));

TEST_P(IsThere, OnlyWhatIsMappedForTheAccess) {
  const auto memory = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  EXPECT_TRUE(is_there(memory, Access::write));
  EXPECT_TRUE(is_there(memory.subspan(1, memory.size() - 2), Access::read));
  ::mprotect(memory.last(kPage).data(), kPage, PROT_READ);
  EXPECT_TRUE(is_there(memory, Access::read));
  EXPECT_FALSE(is_there(memory, Access::write));
  ::munmap(memory.last(kPage).data(), kPage);
  EXPECT_TRUE(is_there(memory.first(memory.size() - kPage), Access::write));
  EXPECT_FALSE(is_there(memory, Access::read));
  unmap(memory);
}

TEST_P(IsThere, MemoryThatIsExposed) {
  const auto memory = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  const auto exposed = Arena::instance().expose(memory);
  EXPECT_TRUE(is_there(memory, Access::write));
  ::mprotect(memory.data(), kPage, PROT_READ);
  EXPECT_FALSE(is_there(memory, Access::write));
  unmap(memory);
  EXPECT_FALSE(is_there(memory, Access::read));
}

/// As while another thread exposes it, in a process that may not handle page faults of the kernel.
TEST_P(IsThere, MemoryWhoseStoresWait) {
  const auto memory = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  memory[0] = std::byte{1};
  std::atomic<int> phase{0};
  bool held = false;
  std::thread holder([&] {
    refuse_userfaultfd(Refused::faults_of_the_kernel);
    const StoreGuard guard;
    held = guard.hold(memory) == 0;
    phase = 1;
    while (phase != 2) std::this_thread::yield();
    if (held) guard.release(memory);
  });
  while (phase != 1) std::this_thread::yield();
  EXPECT_TRUE(is_there(memory, Access::write));
  EXPECT_TRUE(is_there(memory, Access::read));
  phase = 2;
  holder.join();
  unmap(memory);
  if (!held) GTEST_SKIP() << "no store can be made to wait here";
}

TEST_P(IsThere, NotWhatLiesBehindTheEndOfAFile) {
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(GetParam() - kPage)), 0);
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    const auto memory = map(kind, file.get());
    EXPECT_TRUE(is_there(memory.first(memory.size() - kPage), Access::write));
    EXPECT_FALSE(is_there(memory, Access::read));
    EXPECT_FALSE(is_there(memory, Access::write));
    unmap(memory);
  }
}

}  // namespace
}  // namespace wherry::memory
