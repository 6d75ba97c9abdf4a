// SPDX-License-Identifier: Apache-2.0
#include "stream/statistics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <wherry/error.hpp>

#include "base/scoped_environment.hpp"

namespace wherry::statistics {
namespace {

using layout::EndpointKind;
using layout::kStatisticsBytes;
using layout::kStatisticsRecords;
using layout::StatisticsHeader;
using layout::StatisticsRecord;

Endpoint some_endpoint() {
  return {EndpointKind::stream, Address{"", 2, 2000}, Address{"", 7, 41}, 1234, 4096, 65536, "shm"};
}

// Returns the paths under /proc/PID/fd of a process's statistics pages: one or none.
std::vector<std::filesystem::path> statistics_files(pid_t pid) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(std::string("/memfd:") + layout::kStatisticsMemfdName)) found.push_back(entry.path());
  }
  return found;
}

// A page as another process sees it: mapped read-only, as by `wherry top`.
class View {
 public:
  explicit View(pid_t pid) {
    const auto files = statistics_files(pid);
    if (files.size() != 1) return;
    const int descriptor = open(files.front().c_str(), O_RDONLY | O_CLOEXEC);
    mapped_ = mmap(nullptr, kStatisticsBytes, PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() {
    if (valid()) munmap(mapped_, kStatisticsBytes);
  }

  [[nodiscard]] bool valid() const { return mapped_ != MAP_FAILED; }
  [[nodiscard]] const StatisticsHeader& header() const { return *static_cast<const StatisticsHeader*>(mapped_); }
  [[nodiscard]] const StatisticsRecord& record(std::uint32_t index) const {
    const auto* records = static_cast<const std::byte*>(mapped_) + layout::kStatisticsRecordsOffset;
    return reinterpret_cast<const StatisticsRecord*>(records)[index];
  }
  [[nodiscard]] std::vector<const StatisticsRecord*> in_use() const {
    std::vector<const StatisticsRecord*> found;
    for (std::uint32_t i = 0; i < kStatisticsRecords; ++i) {
      if (record(i).generation.load(std::memory_order_acquire) % 2 == 1) found.push_back(&record(i));
    }
    return found;
  }

 private:
  void* mapped_ = MAP_FAILED;
};

// Runs `body` in a child process with statistics of its own. True if it returned true.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Statistics, AnotherProcessReadsWhoAndHowMuch) {
  Record record = open_endpoint(some_endpoint());
  ASSERT_TRUE(record.shown());
  bump(record->bytes_sent, 100);
  bump(record->bytes_sent, 23);
  bump(record->sends, 2);
  set(record->receive_fill, 77);
  const pid_t parent = getpid();
  EXPECT_TRUE(in_child([parent] {
    const View view(parent);
    if (!view.valid() || view.in_use().size() != 1) return false;
    const StatisticsRecord& seen = *view.in_use().front();
    return view.header().version == layout::kStatisticsVersion && view.header().records == kStatisticsRecords &&
           view.header().pid == static_cast<std::uint64_t>(parent) && seen.bytes_sent.load() == 123 &&
           seen.sends.load() == 2 && seen.receive_fill.load() == 77 && seen.local_node == 2 &&
           seen.local_port == 2000 && seen.peer_node == 7 && seen.peer_port == 41 && seen.peer_pid == 1234 &&
           seen.send_capacity == 4096 && seen.receive_capacity == 65536 && std::string(seen.fabric) == "shm";
  }));
}

TEST(Statistics, NobodyElseCanWriteOrResizeThePage) {
  const Record record = open_endpoint(some_endpoint());
  const auto files = statistics_files(getpid());
  ASSERT_EQ(files.size(), 1U);
  const int descriptor = open(files.front().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(mmap(nullptr, kStatisticsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), MAP_FAILED);
  EXPECT_EQ(ftruncate(descriptor, 0), -1);
  EXPECT_EQ(ftruncate(descriptor, 1 << 24), -1);
  close(descriptor);
}

TEST(Statistics, AClosedEndpointIsNoLongerInUse) {
  {
    const Record record = open_endpoint(some_endpoint());
  }
  EXPECT_TRUE(View(getpid()).in_use().empty());
}

TEST(Statistics, AReusedSlotStartsAtZeroWithANewGeneration) {
  std::uint64_t first_generation = 0;
  {
    Record record = open_endpoint(some_endpoint());
    bump(record->bytes_received, 5);
    set(record->asleep_sending, 1);
    first_generation = record->generation.load();
  }
  const Record again = open_endpoint(some_endpoint());
  EXPECT_EQ(again->generation.load(), first_generation + 2);
  EXPECT_EQ(again->bytes_received.load(), 0U);
  EXPECT_EQ(again->asleep_sending.load(), 0U);
}

TEST(Statistics, MovingAHandleKeepsItsCounters) {
  Record first = open_endpoint(some_endpoint());
  bump(first->sends);
  Record second = std::move(first);
  EXPECT_EQ(second->sends.load(), 1U);
  Record third = open_endpoint(some_endpoint());
  third = std::move(second);
  EXPECT_EQ(third->sends.load(), 1U);
  EXPECT_EQ(View(getpid()).in_use().size(), 1U);
}

TEST(Statistics, AFabricsNameIsCutToItsField) {
  Endpoint endpoint = some_endpoint();
  endpoint.fabric = "faulty+inproc-put";
  const Record record = open_endpoint(endpoint);
  EXPECT_STREQ(record->fabric, "faulty+inproc-p");
}

TEST(Statistics, EndpointsBeyondThePageAreCountedAndKeepPrivateCounters) {
  std::vector<Record> shown;
  for (std::uint32_t i = 0; i < kStatisticsRecords; ++i) shown.push_back(open_endpoint(some_endpoint()));
  EXPECT_TRUE(shown.back().shown());
  const View view(getpid());
  {
    Record one = open_endpoint(some_endpoint());
    Record other = open_endpoint(some_endpoint());
    EXPECT_FALSE(one.shown());
    EXPECT_EQ(view.header().endpoints_not_shown.load(), 2U);
    bump(one->sends, 3);
    EXPECT_EQ(one->sends.load(), 3U);
    EXPECT_EQ(other->sends.load(), 0U);
  }
  EXPECT_EQ(view.header().endpoints_not_shown.load(), 0U);
  shown.pop_back();
  EXPECT_TRUE(open_endpoint(some_endpoint()).shown());
}

TEST(Statistics, ThreadsThatOpenAndCloseAtOnceNeverShareASlot) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 500;
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= kThreads; ++t) {
    threads.emplace_back([t, &clashes] {
      for (int i = 0; i < kRounds; ++i) {
        Record record = open_endpoint(some_endpoint());
        set(record->bytes_sent, t);
        std::this_thread::yield();
        if (record->bytes_sent.load() != t) ++clashes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes.load(), 0);
  EXPECT_TRUE(View(getpid()).in_use().empty());
}

TEST(Statistics, AForkedChildHasAPageOfItsOwn) {
  Record record = open_endpoint(some_endpoint());
  EXPECT_TRUE(in_child([] {
    if (!statistics_files(getpid()).empty()) return false;  // the child would look like the parent
    const Record own = open_endpoint(some_endpoint());
    const View view(getpid());
    return view.valid() && view.header().pid == static_cast<std::uint64_t>(getpid()) && view.in_use().size() == 1;
  }));
  EXPECT_EQ(View(getpid()).in_use().size(), 1U);
}

TEST(Statistics, AForkedChildDoesNotGiveBackTheParentsSlot) {
  Record record = open_endpoint(some_endpoint());
  const std::uint64_t generation = record->generation.load();
  EXPECT_TRUE(in_child([&record] {
    const Record own = open_endpoint(some_endpoint());
    record = Record();
    return true;
  }));
  EXPECT_EQ(record->generation.load(), generation);
}

TEST(Statistics, ADescriptorNumberUsedForSomethingElseSurvivesFork) {
  const Record record = open_endpoint(some_endpoint());
  const auto files = statistics_files(getpid());
  ASSERT_EQ(files.size(), 1U);
  const int number = std::stoi(files.front().filename());
  EXPECT_TRUE(in_child([number] {
    const Record own = open_endpoint(some_endpoint());
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(other, std::stoi(statistics_files(getpid()).front().filename())) < 0) return false;
    return in_child([number] { return fcntl(number, F_GETFD) >= 0; });
  }));
}

TEST(Statistics, OffMeansPrivateCountersAndNoMemoryFile) {
  EXPECT_TRUE(in_child([] {
    const ScopedEnvironment off("WHERRY_STATISTICS", "off");
    Record record = open_endpoint(some_endpoint());
    bump(record->sends);
    return !record.shown() && record->sends.load() == 1 && statistics_files(getpid()).empty();
  }));
}

TEST(Statistics, WithoutADescriptorLeftTheyAreOff) {
  EXPECT_TRUE(in_child([] {
    const rlimit few{.rlim_cur = 64, .rlim_max = 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return false;
    while (dup(STDERR_FILENO) >= 0) continue;
    Record record = open_endpoint(some_endpoint());
    bump(record->sends);
    return !record.shown() && record->sends.load() == 1;
  }));
}

TEST(Statistics, AnInvalidSettingIsRefused) {
  EXPECT_TRUE(in_child([] {
    const ScopedEnvironment bad("WHERRY_STATISTICS", "maybe");
    try {
      open_endpoint(some_endpoint());
    } catch (const Error& error) {
      return error.code().value() == EINVAL;
    }
    return false;
  }));
}

TEST(Statistics, SlotsNeverUsedCostNoMemory) {
  EXPECT_TRUE(in_child([] {
    const Record record = open_endpoint(some_endpoint());
    struct stat file{};
    return stat(statistics_files(getpid()).front().c_str(), &file) == 0 && file.st_blocks * 512 <= 4096;
  }));
}

}  // namespace
}  // namespace wherry::statistics
