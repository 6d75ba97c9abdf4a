// SPDX-License-Identifier: Apache-2.0
// Exposes memory while others use it: none of their stores are lost.
#include "memory/page_exchange.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/arena.hpp"
#include "memory/store_guard.hpp"
#include "tests/common/refused_userfaultfd.hpp"
#include "tests/common/soak.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::memory {
namespace {

using std::chrono::seconds;

constexpr std::size_t kPage = 4096;

/// Anonymous private memory with a counter at the start of each page. It is unmapped at the end of the scope, not when
/// it is no longer exposed.
class CountedPages {
 public:
  explicit CountedPages(std::size_t count)
      : bytes_(static_cast<std::byte*>(
                   ::mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               count * kPage) {}
  CountedPages(const CountedPages&) = delete;
  CountedPages& operator=(const CountedPages&) = delete;
  ~CountedPages() { ::munmap(bytes_.data(), bytes_.size()); }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::size_t count() const { return bytes_.size() / kPage; }
  [[nodiscard]] std::atomic_ref<std::uint64_t> operator[](std::size_t page) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(&bytes_[page * kPage]));
  }

 private:
  std::span<std::byte> bytes_;
};

/// A thread that repeats a step until stop(). The constructor returns after the first step.
class Busy {
 public:
  template <class Step>
  explicit Busy(Step step)
      : thread_([this, step]() mutable {
          for (; !stopped_.load(std::memory_order_relaxed); begun_.store(true, std::memory_order_relaxed)) step();
        }) {
    while (!begun_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
  ~Busy() { stop(); }
  void stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

/// Exposes memory in a new thread, to which the kernel refuses `what`.
std::shared_ptr<LocalRegion> expose(std::span<std::byte> memory, Refused what = Refused::nothing) {
  std::shared_ptr<LocalRegion> exposed;
  std::thread([&] {
    refuse_userfaultfd(what);
    exposed = Arena::instance().expose(memory);
  }).join();
  return exposed;
}

enum class Guard : std::uint8_t { none, programs, all };

Guard guard_here(Refused what = Refused::nothing) {
  Guard found = Guard::none;
  std::thread([&] {
    refuse_userfaultfd(what);
    const StoreGuard guard;
    found = !guard.works() ? Guard::none : guard.holds_kernel() ? Guard::all : Guard::programs;
  }).join();
  return found;
}

/// Returns how many increments by another thread are lost while the counters' pages are exposed.
std::uint64_t lost_increments(std::size_t pages, Refused what) {
  const CountedPages memory(pages);
  std::vector<std::uint64_t> counts(pages);
  Busy counting([&, page = std::size_t{0}]() mutable {
    memory[page].store(memory[page].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    ++counts[page];
    page = (page + 1) % pages;
  });
  const auto exposed = expose(memory.bytes(), what);
  counting.stop();
  std::uint64_t lost = 0;
  for (std::size_t page = 0; page < pages; ++page) lost += counts[page] - memory[page].load();
  return lost;
}

class StoresMeanwhile : public ::testing::TestWithParam<Refused> {};

TEST_P(StoresMeanwhile, OfAnotherThreadAreNotLost) {
  if (guard_here(GetParam()) == Guard::none) GTEST_SKIP() << "userfaultfd is refused here";
  const TimeLimit limit{seconds(2)};
  const int rounds = soaking() ? 20'000 : 100;
  for (int round = 0; round < rounds && !limit.over(); ++round) {
    for (const std::size_t pages : {std::size_t{1}, std::size_t{16}, std::size_t{700}}) {
      ASSERT_EQ(lost_increments(pages, GetParam()), 0U) << "of " << pages << " pages, in round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PageExchange, StoresMeanwhile,
                         ::testing::Values(Refused::nothing, Refused::faults_of_the_kernel), [](const auto& refused) {
                           return refused.param == Refused::nothing ? "NothingRefused" : "FaultsOfTheKernelRefused";
                         });

TEST(PageExchange, LosesNothingThatASystemCallStores) {
  if (guard_here() != Guard::all) GTEST_SKIP() << "the faults of the kernel are not ours to handle here";
  const std::vector<std::uint64_t> numbers = [] {
    std::vector<std::uint64_t> made(512);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = i + 1;
    return made;
  }();
  const UniqueFd file(::memfd_create("numbers", MFD_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), numbers.data(), numbers.size() * 8, 0), 512 * 8);
  const TimeLimit limit{seconds(2)};
  for (int round = 0; round < (soaking() ? 20'000 : 100) && !limit.over(); ++round) {
    const CountedPages memory(64);
    std::uint64_t wrong = 0;
    Busy reading([&, i = std::size_t{0}]() mutable {
      const std::size_t page = i % memory.count();
      const std::size_t number = ++i % numbers.size();
      const ssize_t got = ::pread(file.get(), &memory.bytes()[page * kPage], 8, static_cast<off_t>(number * 8));
      wrong += got == 8 && memory[page].load(std::memory_order_relaxed) == numbers[number] ? 0 : 1;
    });
    const auto exposed = expose(memory.bytes());
    reading.stop();
    ASSERT_EQ(wrong, 0U) << "in round " << round;
  }
}

/// The counter of the signal handler, and how often the handler ran.
std::atomic<std::atomic<std::uint64_t>*> counter{nullptr};
std::atomic<std::uint64_t> signals{0};

TEST(PageExchange, LosesNothingThatASignalsHandlerStores) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {
    if (auto* const word = counter.load(); word != nullptr) {
      word->store(word->load() + 1);
      ++signals;
    }
  };
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval timer{.it_interval = {0, 50}, .it_value = {0, 50}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &timer, nullptr), 0);
  for (int round = 0; round < 50; ++round) {
    const CountedPages memory(256);
    std::memset(memory.bytes().data(), 0, memory.bytes().size());
    signals = 0;
    counter = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.bytes().data());
    const auto exposed = Arena::instance().expose(memory.bytes());
    counter = nullptr;
    EXPECT_EQ(memory[0].load(), signals.load()) << "in round " << round;
  }
  const itimerval none{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &none, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
}

TEST(PageExchange, OfAThreadsOwnStackWithAllThatLiesThereGoesWell) {
  for (const Refused what : {Refused::nothing, Refused::faults_of_the_kernel, Refused::all}) {
    // A stack that is not used afterwards: its pages stay shared with every process that maps them.
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    void* const stack = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    ASSERT_EQ(::pthread_attr_init(&attributes), 0);
    ASSERT_EQ(::pthread_attr_setstack(&attributes, stack, kBytes), 0);
    struct Run {
      Refused what;
      std::span<std::byte> memory;
      std::atomic<bool> exposed{false};
    } run{what, {static_cast<std::byte*>(stack), kBytes}};
    pthread_t thread{};
    const auto expose_own = [](void* argument) -> void* {
      Run& asked = *static_cast<Run*>(argument);
      refuse_userfaultfd(asked.what);
      volatile int sum = 0;  // kept on the stack that is exchanged
      const auto exposed = Arena::instance().expose(asked.memory);
      for (int i = 0; i < 1000; ++i) sum = sum + i;
      asked.exposed = true;
      return sum == 499'500 ? argument : nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, &attributes, expose_own, &run), 0);
    while (!run.exposed) std::this_thread::yield();  // pthread_join sleeps on a word in this memory
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &run);
    ::pthread_attr_destroy(&attributes);
    ::munmap(stack, kBytes);
  }
}

TEST(PageExchange, KeepsTheContentWhateverIsRefused) {
  for (const Refused what : {Refused::nothing, Refused::faults_of_the_kernel, Refused::all}) {
    for (const std::size_t pages : {1, 15, 16, 17, 511, 512, 513, 1300}) {
      for (const std::size_t each : {1, 3, 40}) {
        const CountedPages memory(pages);
        for (std::size_t page = 0; page < pages; page += each) memory[page].store(page + 1);
        const auto exposed = expose(memory.bytes(), what);
        const std::byte* const view = exposed->pieces().front().view;
        for (std::size_t page = 0; page < pages; ++page) {
          ASSERT_EQ(memory[page].load(), page % each == 0 ? page + 1 : 0) << page << " of " << pages;
          ASSERT_EQ(std::memcmp(view + page * kPage, &memory.bytes()[page * kPage], kPage), 0) << page;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wherry::memory
