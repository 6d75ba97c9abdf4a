// SPDX-License-Identifier: Apache-2.0
#include "collect/session.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/common/memory_channel.hpp"
#include "tests/common/temporary_directory.hpp"

namespace {

using namespace std::chrono_literals;

// A simulated disk: the number of next flushes that fail, and the time that each flush takes.
std::atomic<int> failing_flushes{0};
std::atomic<std::chrono::milliseconds> flush_takes{0ms};

}  // namespace

// Replaces the C library's function, because failing and slow disks need a device driver.
extern "C" int syncfs(int descriptor) noexcept {
  if (descriptor >= 0) {
    std::this_thread::sleep_for(flush_takes.load());
    if (failing_flushes.fetch_sub(1) > 0) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_syncfs, descriptor));
}

namespace wherry::tools {
namespace {

using layout::ShipAnswer;
using layout::ShipKind;
using layout::ShipRecord;
using layout::ShipResult;

/// The records that a shipper sends.
class Records {
 public:
  Records() {
    layout::ShipHello hello{};
    hello.version = layout::kShipVersion;
    hello.magic = layout::kShipMagic;
    append(std::as_bytes(std::span(&hello, 1)));
  }

  void directory(const std::string& path) { thing(ShipKind::directory, path); }
  void empty_file(const std::string& path) {
    thing(ShipKind::file, path);
    ContentHash hash;
    hash.restart();
    add(ShipKind::file_end, {}, hash.value());
  }
  void goodbye() { add(ShipKind::goodbye, {}, 0); }

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  void thing(ShipKind kind, const std::string& path) {
    ++id_;
    add(kind, path, 0);
  }
  void add(ShipKind kind, const std::string& path, std::uint64_t hash) {
    ShipRecord record{};
    record.kind = static_cast<std::uint32_t>(kind);
    record.path_bytes = static_cast<std::uint32_t>(path.size());
    record.id = id_;
    record.mode = 0755;
    record.hash = hash;
    append(std::as_bytes(std::span(&record, 1)));
    append(std::as_bytes(std::span(path)));
  }
  void append(std::span<const std::byte> more) {
    bytes_.append(reinterpret_cast<const char*>(more.data()), more.size());
  }

  std::string bytes_;
  std::uint64_t id_ = 0;
};

/// The channel of a shipper that pauses at one record, or at each, until the collector waits for it without a limit.
class PausingChannel final : public Channel {
 public:
  static constexpr std::size_t kEverywhere = SIZE_MAX;

  PausingChannel(std::span<const std::byte> input, std::size_t where) : channel_(input), where_(where) {}

  std::span<std::byte> space() override { return channel_.space(); }
  void wrote(std::size_t bytes) override { channel_.wrote(bytes); }
  void flush() override { channel_.flush(); }
  void finish_sending() override { channel_.finish_sending(); }
  std::span<const std::byte> peek(Limit limit) override {
    if (limit) limits_.push_back(*limit);
    if (limit && (where_ == kEverywhere || where_ == taken_)) return {};
    return channel_.peek(limit);
  }
  void took(std::size_t bytes) override {
    taken_ += bytes;
    channel_.took(bytes);
  }
  void cancel() override {}
  [[nodiscard]] const ChannelPeer& peer() const override { return channel_.peer(); }

  [[nodiscard]] const std::vector<std::chrono::milliseconds>& limits() const { return limits_; }
  /// The collector's answers: kind and id.
  [[nodiscard]] std::vector<std::pair<ShipAnswer, std::uint64_t>> answers() const {
    std::vector<std::pair<ShipAnswer, std::uint64_t>> found;
    for (std::span<const std::byte> rest = channel_.sent(); rest.size() >= sizeof(ShipResult);) {
      ShipResult result;
      std::memcpy(&result, rest.data(), sizeof result);
      found.emplace_back(static_cast<ShipAnswer>(result.answer), result.id);
      rest = rest.subspan(sizeof result + result.path_bytes + result.message_bytes);
    }
    return found;
  }

 private:
  test::MemoryChannel channel_;
  std::size_t where_;
  std::size_t taken_ = 0;
  std::vector<std::chrono::milliseconds> limits_;
};

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (must_flush_each(destination_.place("x").directory->get())) GTEST_SKIP() << "no flushes are shared here";
  }
  void TearDown() override {
    failing_flushes = 0;
    flush_takes = 0ms;
  }
  ShipperReport serve(Channel& channel) {
    return Session(channel, destination_, totals_, [](const std::string&) {}).run();
  }

  test::TemporaryDirectory root_;
  Destination destination_{(root_.path() / "into").string(), true};
  LiveTotals totals_;
};

TEST_F(SessionTest, AnErrorThatIsToldOnceIsAnotherProgramsAndOneThatComesAgainIsARefusal) {
  Records records;
  records.empty_file("file");
  records.goodbye();
  for (const auto& [failing, end] :
       {std::pair{1, SessionEnd::complete}, {2, SessionEnd::complete}, {9, SessionEnd::refused}}) {
    failing_flushes = failing;
    PausingChannel channel(records.bytes(), 0);
    const ShipperReport report = serve(channel);
    EXPECT_EQ(report.end, end) << failing;
    EXPECT_EQ(report.stored.files, 1U) << "the file itself is on the disk: fsync says so";
  }
}

TEST_F(SessionTest, AShipperThatPausesIsWaitedForAsLongAsTheFlushBeforeTook) {
  Records records;
  for (const char* path : {"a", "b"}) records.empty_file(path);
  records.goodbye();
  flush_takes = 60ms;
  PausingChannel channel(records.bytes(), PausingChannel::kEverywhere);
  EXPECT_EQ(serve(channel).end, SessionEnd::complete);
  ASSERT_EQ(channel.limits().size(), 2U) << "once after each file";
  EXPECT_EQ(channel.limits()[0], 20ms);
  EXPECT_GE(channel.limits()[1], 60ms);
}

TEST_F(SessionTest, WhatIsOnlyNowBeingReadIsNotSaidToBeStored) {
  Records records;
  for (int i = 0; i < 255; ++i) records.directory("d" + std::to_string(i));
  records.empty_file("file");
  const std::string refused = "../outside";
  records.directory(refused);
  PausingChannel channel(records.bytes(), records.bytes().size() - refused.size());
  (void)serve(channel);
  EXPECT_EQ(channel.answers(), (std::vector<std::pair<ShipAnswer, std::uint64_t>>{
                                   {ShipAnswer::stored, 256}, {ShipAnswer::refused, 257}, {ShipAnswer::summary, 257}}));
}

}  // namespace
}  // namespace wherry::tools
