// SPDX-License-Identifier: Apache-2.0
#include "top/statistics_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"
#include "stream/statistics.hpp"
#include "top/processes.hpp"

namespace wherry::tools {
namespace {

using layout::EndpointKind;
using layout::kStatisticsBytes;
using layout::StatisticsHeader;
using layout::StatisticsRecord;

statistics::Endpoint some_endpoint() {
  return {EndpointKind::stream, Address{"", 2, 2000}, Address{"", 7, {}}, 1234, 4096, 65536, "shm", "beta"};
}

// This process as `wherry top` sees it.
ProcessReading own_reading() {
  for (const ProcessReading& process : read_processes().processes) {
    if (process.pid == getpid()) return process;
  }
  return {};
}

// The descriptor of this process's own statistics page.
std::filesystem::path own_page() {
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(descriptor, gone);
    if (target.starts_with(std::string("/memfd:") + layout::kStatisticsMemfdName)) return descriptor;
  }
  return {};
}

// A page with the bytes that a test writes into it.
class ForgedPage {
 public:
  explicit ForgedPage(std::size_t bytes = kStatisticsBytes, int seals = F_SEAL_SHRINK)
      : file_(memfd_create(layout::kStatisticsMemfdName, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
    mapped_ =
        static_cast<std::byte*>(mmap(nullptr, kStatisticsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
    EXPECT_EQ(fcntl(file_.get(), F_ADD_SEALS, seals), 0);
    if (bytes < kStatisticsBytes) return;
    header().version = layout::kStatisticsVersion;
    header().pid = 42;
  }
  ForgedPage(const ForgedPage&) = delete;
  ForgedPage& operator=(const ForgedPage&) = delete;
  ~ForgedPage() { munmap(mapped_, kStatisticsBytes); }

  StatisticsHeader& header() { return *reinterpret_cast<StatisticsHeader*>(mapped_); }
  StatisticsRecord& record(std::size_t index) {
    return reinterpret_cast<StatisticsRecord*>(mapped_ + layout::kStatisticsRecordsOffset)[index];
  }
  layout::TransferClass& transfers(std::size_t place) {
    return reinterpret_cast<layout::TransferClass*>(mapped_ + layout::kTransferClassesOffset)[place];
  }
  std::byte* bytes() { return mapped_; }
  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }
  [[nodiscard]] auto read(std::uint64_t pid = 42) const { return read_statistics_file(path(), pid); }

 private:
  UniqueFd file_;
  std::byte* mapped_;
};

TEST(StatisticsFile, ShowsWhatTheLibraryCounts) {
  const statistics::Record record = statistics::open_endpoint(some_endpoint());
  statistics::bump(record->bytes_sent, 123);
  statistics::set(record->send_fill, 77);
  statistics::set(record->asleep_receiving, 1);
  const ProcessReading process = own_reading();
  ASSERT_EQ(process.endpoints.size(), 1U);
  EXPECT_EQ(process.program, program_invocation_short_name);
  const EndpointReading& endpoint = process.endpoints.front();
  EXPECT_EQ(endpoint.local, (Address{"", 2, 2000}));
  EXPECT_EQ(endpoint.peer, (Address{"", 7, {}}));
  EXPECT_EQ(endpoint.peer_pid, 1234U);
  EXPECT_EQ(endpoint.fabric, "shm");
  EXPECT_EQ(endpoint.peer_host, "beta");
  EXPECT_EQ(endpoint.send_capacity, 4096U);
  EXPECT_EQ(endpoint.receive_capacity, 65536U);
  EXPECT_EQ(endpoint.bytes_sent, 123U);
  EXPECT_EQ(endpoint.send_fill, 77U);
  EXPECT_TRUE(endpoint.asleep_receiving);
  EXPECT_FALSE(endpoint.asleep_sending);
}

TEST(StatisticsFile, ShowsNoClosedEndpoint) {
  {
    const statistics::Record closed = statistics::open_endpoint(some_endpoint());
  }
  EXPECT_TRUE(own_reading().endpoints.empty());
}

TEST(StatisticsFile, ShowsEveryEndpointOfAFullPage) {
  std::vector<statistics::Record> records;
  for (std::uint32_t i = 0; i < layout::kStatisticsRecords + 2; ++i)
    records.push_back(statistics::open_endpoint(some_endpoint()));
  const ProcessReading process = own_reading();
  EXPECT_EQ(process.endpoints.size(), layout::kStatisticsRecords);
  EXPECT_EQ(process.endpoints_not_shown, 2U);
}

TEST(StatisticsFile, RefusesWhatIsNoStatisticsPage) {
  EXPECT_FALSE(read_statistics_file("/no/such/file", 1));
  EXPECT_FALSE(read_statistics_file("/dev/null", 1));
  EXPECT_FALSE(read_statistics_file("/proc/self/exe", 1));
  EXPECT_FALSE(ForgedPage(4096).read());
  EXPECT_FALSE(ForgedPage(kStatisticsBytes + 4096).read());
}

TEST(StatisticsFile, RefusesAPageThatCouldShrinkUnderTheReader) {
  EXPECT_TRUE(ForgedPage(kStatisticsBytes, F_SEAL_SHRINK).read());
  EXPECT_FALSE(ForgedPage(kStatisticsBytes, F_SEAL_GROW).read());
}

TEST(StatisticsFile, RefusesAnotherVersion) {
  ForgedPage page;
  page.header().version = layout::kStatisticsVersion + 1;
  EXPECT_FALSE(page.read());
}

TEST(StatisticsFile, RefusesAPageInheritedFromAnotherProcess) {
  EXPECT_TRUE(ForgedPage().read(42));
  EXPECT_FALSE(ForgedPage().read(43));
}

TEST(StatisticsFile, DropsSlotsThatNoWherryProcessWrites) {
  ForgedPage page;
  for (std::size_t i = 0; i < 3; ++i) {
    page.record(i).generation.store(1);
    page.record(i).kind = static_cast<std::uint32_t>(EndpointKind::stream);
  }
  page.record(0).kind = 99;
  page.record(1).send_capacity = fabric::kMaxSegmentBytes + 1;
  const auto process = page.read();
  ASSERT_EQ(process->endpoints.size(), 1U);
  EXPECT_EQ(process->endpoints.front().record, 2U);
}

TEST(StatisticsFile, TextsHaveNoControlCharactersAndEndWithTheirField) {
  ForgedPage page;
  std::memset(page.header().program, '\x1b', sizeof(page.header().program));
  page.record(0).generation.store(1);
  page.record(0).kind = static_cast<std::uint32_t>(EndpointKind::listener);
  std::memset(page.record(0).fabric, 'f', sizeof(page.record(0).fabric));
  const auto process = page.read();
  EXPECT_EQ(process->program.find('\x1b'), std::string::npos);
  EXPECT_EQ(process->endpoints.front().fabric, std::string(16, 'f'));
}

TEST(StatisticsFile, AFillIsNeverMoreThanItsRing) {
  ForgedPage page;
  page.record(0).generation.store(1);
  page.record(0).kind = static_cast<std::uint32_t>(EndpointKind::stream);
  page.record(0).send_capacity = 4096;
  page.record(0).send_fill.store(UINT64_MAX);
  EXPECT_EQ(page.read()->endpoints.front().send_fill, 4096U);
}

TEST(StatisticsFile, RandomBytesAreReadSafely) {
  ForgedPage page;
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t at = sizeof(StatisticsHeader); at < kStatisticsBytes; at += 8) {
      const std::uint64_t word = random();
      std::memcpy(page.bytes() + at, &word, sizeof(word));
    }
    for (std::size_t i = 0; i < layout::kStatisticsRecords; i += 2) page.record(i).kind = 1 + i % 2;
    ASSERT_TRUE(page.read());
  }
}

TEST(StatisticsFile, ShowsTheClassesOfTransfersThatThereWere) {
  ForgedPage page;
  EXPECT_TRUE(page.read()->transfers.empty());
  const std::size_t place = layout::transfer_class(layout::TransferKind::write, true, false, 2);
  layout::TransferClass& one = page.transfers(place);
  one.host.calls.store(3);
  one.host.bytes.store(3 << 18);
  one.host.estimate_ns.store(70'000);
  one.kernel.explored.store(1);
  const auto process = page.read();
  ASSERT_EQ(process->transfers.size(), 1U);
  const TransfersReading& reading = process->transfers.front();
  EXPECT_EQ(reading.traits.kind, layout::TransferKind::write);
  EXPECT_EQ(reading.traits.bytes, 256U << 10);
  EXPECT_TRUE(reading.traits.in_order && !reading.traits.crowded);
  EXPECT_EQ(reading.host.calls, 3U);
  EXPECT_EQ(reading.host.bytes, 3U << 18);
  EXPECT_EQ(reading.host.estimate_ns, 70'000U);
  EXPECT_EQ(reading.kernel.explored, 1U);
}

TEST(StatisticsFile, PagesOfTransfersThatThereWereNoneOfGetNoMemory) {
  const ForgedPage page;
  EXPECT_TRUE(page.read());
  for (std::size_t at = layout::kTransferClassesOffset; at < kStatisticsBytes; at += 4096)
    EXPECT_LT(lseek(page.file(), static_cast<off_t>(at), SEEK_DATA), 0);
}

// The owner opens and closes endpoints as fast as it can; the two words of each must always belong together.
TEST(StatisticsFile, ASlotReusedWhileItIsReadIsNeverShownMixed) {
  const statistics::Record keep = statistics::open_endpoint(some_endpoint());
  const std::jthread owner([](const std::stop_token& stop) {
    for (std::uint16_t i = 1; !stop.stop_requested(); i = i == 60000 ? 1 : i + 1) {
      statistics::Endpoint endpoint = some_endpoint();
      endpoint.local.port = i;
      endpoint.peer.port = i;
      endpoint.send_capacity = i;
      const statistics::Record record = statistics::open_endpoint(endpoint);
    }
  });
  const std::string page = own_page();
  for (int i = 0; i < 10'000; ++i) {
    const auto process = read_statistics_file(page, static_cast<std::uint64_t>(getpid()));
    ASSERT_TRUE(process);
    for (const EndpointReading& endpoint : process->endpoints) {
      if (endpoint.record == 0) continue;
      ASSERT_EQ(endpoint.local.port, endpoint.peer.port);
      ASSERT_EQ(endpoint.send_capacity, *endpoint.local.port);
    }
  }
}

}  // namespace
}  // namespace wherry::tools
