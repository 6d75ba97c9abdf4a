// SPDX-License-Identifier: Apache-2.0
// Reads by way of the card's process, which is killed, and stopped.
#include "tests/common/os_client_fixture.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <thread>

#include <wherry/error.hpp>

#include "tests/common/refused_calls.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

using namespace std::chrono_literals;

TEST_F(OsPath, ReadsAreServedThroughTheCacheOfTheCard) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  std::vector<std::byte> block(kBlockBytes);
  // At first the file is too young.
  while (cache_.open(data_.key()).none() || !cache_.read(cache_.open(data_.key()), kBlockBytes, block)) {
    read_and_compare(file, 0, kBytes);
    ASSERT_GT(std::exchange(served_, 0), 0);
  }
  EXPECT_TRUE(std::ranges::equal(block, data_.content().subspan(kBlockBytes, kBlockBytes)));
  for (const std::uint64_t offset : {0UL, 1UL, 16'383UL, 100'000UL, kBytes - 5}) read_and_compare(file, offset, 70'001);
  EXPECT_EQ(served_, 5);
}

TEST_F(OsPath, WhatIsWrittenIsReadOnEveryPathAfterwards) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t offset = static_cast<std::uint64_t>(i) * 1237 % (kBytes - 40'000);
    write(offset, 40'000, static_cast<std::byte>(i));
    read_and_compare(file, offset, 40'000);
    read_and_compare(file, 0, kBytes);
  }
  EXPECT_EQ(served_, 400);
}

TEST_F(OsPath, WhereAnotherFileHasTheNameTheCallerServesItself) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  const TestFile other(kBytes, 2);
  std::filesystem::rename(other.path(), data_.path());
  read_and_compare(file, 0, 1000);
  EXPECT_EQ(served_, 0);
  OsFile renamed(client, other.descriptor());
  std::vector<std::byte> back(1000);
  const iovec buffer = buffer_of(back);
  ASSERT_TRUE(renamed.read(0, std::span(&buffer, 1)));
  EXPECT_TRUE(std::ranges::equal(back, other.content().first(1000)));
}

TEST_F(OsPath, AppendedAndUncachedDescriptorsAreTheCallers) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  std::vector<std::byte> back(10);
  const iovec buffer = buffer_of(back);
  for (const int flags : {O_RDWR | O_APPEND, O_RDWR | O_DIRECT, O_PATH}) {
    const UniqueFd descriptor(::open(data_.path().c_str(), flags | O_CLOEXEC));
    if (!descriptor.valid()) continue;  // no O_DIRECT on some file systems
    OsFile file(client, descriptor.get());
    EXPECT_FALSE(file.read(0, std::span(&buffer, 1)));
  }
}

/// Whether it could be executed: its writers have closed it.
bool can_be_executed(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && ::fcntl(file.get(), F_SETLEASE, F_RDLCK) == 0;
}

TEST_F(OsPath, TheCardHoldsNothingOpenToWrite) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  TestFile data(1000);  // which the card did not inherit
  OsFile file(client, data.descriptor());
  std::vector<std::byte> back(1000);
  const iovec buffer = buffer_of(back);
  ASSERT_TRUE(file.read(0, std::span(&buffer, 1)));
  data.close();
  EXPECT_TRUE(can_be_executed(data.path()));
}

TEST_F(OsPath, AFileThatCannotBeCachedIsTheCallers) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  const UniqueFd status(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  OsFile file(client, status.get());
  std::vector<std::byte> back(10);
  const iovec buffer = buffer_of(back);
  EXPECT_FALSE(file.read(0, std::span(&buffer, 1)));
}

TEST_F(OsPath, ACardWithoutThreadsServesNoFilesAndSaysWhy) {
  const TestSegment segment;
  Child card([&] {
    refuse_calls({SYS_clone, SYS_clone3}, EAGAIN);
    try {
      const CardServer server(segment.path());
    } catch (const Error& error) {
      return error.code().value() == EAGAIN && std::string(error.what()).find("pids.max") != std::string::npos;
    }
    return false;
  });
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(OsPath, NobodyWaitsForACardThatIsStopped) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_, 20ms);
  std::vector<std::unique_ptr<OsFile>> files;
  for (int i = 0; i < 10; ++i) files.push_back(std::make_unique<OsFile>(client, data_.descriptor()));
  while (served_ == 0) read_and_compare(*files[0], 0, kBytes);  // a busy machine may be late, too
  ::kill(card.pid(), SIGSTOP);
  ASSERT_EQ(::waitpid(card.pid(), nullptr, WUNTRACED), card.pid());
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (const auto& file : files) {
        std::vector<std::byte> back(kBytes);
        const iovec buffer = buffer_of(back);
        if (file->read(0, std::span(&buffer, 1))) ++served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 0);
  OsFile& last = *files.back();
  while (files.size() > 1) files.erase(files.begin());  // their closing, too
  ::kill(card.pid(), SIGCONT);
  served_ = 0;
  while (served_ == 0) read_and_compare(last, 0, kBytes);
}

TEST_F(OsPath, WithoutACardTheCallerServesItselfAndWithTheNextTheCardDoes) {
  ASSERT_TRUE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  read_and_compare(file, 0, 1000);
  Child first = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  read_and_compare(file, 0, 1000);
  EXPECT_EQ(served_, 1);
  first.kill();
  first.wait();
  read_and_compare(file, 0, 1000);
  EXPECT_EQ(served_, 1);
  Child second = start_card();
  read_and_compare(file, 0, 1000);
  EXPECT_EQ(served_, 2);
}

TEST_F(OsPath, TheDeathOfTheCardIsSaidOnce) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_, 1h);
  OsFile file(client, data_.descriptor());
  read_and_compare(file, 0, 1000);
  card.kill();
  card.wait();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) read_and_compare(file, 0, 1000);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(served_, 1);
  EXPECT_NE(said.find("the card's process is gone; this process reads by itself"), std::string::npos);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1);
}

TEST_F(OsPath, ACardThatEndsInOrderServesNobodyAnyMore) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  read_and_compare(file, 0, 1000);
  ASSERT_EQ(served_, 1);
  ::eventfd_write(stop_.get(), 1);
  EXPECT_EQ(card.wait(), 0);
  EXPECT_EQ(cache_.card_server().port, 0U);
  read_and_compare(file, 0, 1000);
  EXPECT_EQ(served_, 1);
}

TEST_F(OsPath, AForkedChildConnectsForItself) {
  Child card = start_card();
  ASSERT_FALSE(cache_.attach(path_.c_str()));
  OsClient client(cache_);
  OsFile file(client, data_.descriptor());
  read_and_compare(file, 0, 1000);
  Child child([&] {
    (void)cache_.after_fork();
    read_and_compare(file, 5, 1000);
    read_and_compare(file, 7, 1000);
    return served_ == 3 && !HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
  read_and_compare(file, 9, 1000);
  EXPECT_EQ(served_, 2);
}

class CardKilled : public OsPath, public ::testing::WithParamInterface<FaultPoint> {};

TEST_P(CardKilled, InTheMiddleOfACallNothingIsLost) {
  const int rounds = soaking() ? 60 : 6;
  std::optional<Child> card;
  std::optional<OsClient> client;
  for (int round = 1; round <= rounds; ++round) {
    SCOPED_TRACE(round);
    plan_->faults.point = -1;
    card.emplace(start_card());
    if (!client) {
      ASSERT_FALSE(cache_.attach(path_.c_str()));
      client.emplace(cache_);
    }
    OsFile file(*client, data_.descriptor());
    read_and_compare(file, 0, 1000);
    ASSERT_EQ(std::exchange(served_, 0), 1);
    plan_->faults.kill_at(GetParam(), round);
    for (int i = 0; plan_->faults.countdown > 0; ++i) {
      write(static_cast<std::uint64_t>(i) % 7 * 10'000, 200'000, static_cast<std::byte>(i + round));
      read_and_compare(file, 0, kBytes);
    }
    EXPECT_EQ(card->wait(), -1);
    read_and_compare(file, 0, kBytes);
    EXPECT_TRUE(std::ranges::equal(data_.content(), as_data(content_of(data_.path()))));
    served_ = 0;
  }
}

INSTANTIATE_TEST_SUITE_P(At, CardKilled,
                         ::testing::Values(FaultPoint::request_taken, FaultPoint::piece_read, FaultPoint::answered));

}  // namespace
}  // namespace wherry::file
