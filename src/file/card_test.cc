// SPDX-License-Identifier: Apache-2.0
#include "file/card.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <wherry/error.hpp>

#include "base/child_process.hpp"
#include "file/cache.hpp"
#include "tests/common/file_cache.hpp"

namespace wherry::file {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kCache = std::uint64_t{4} << 20;

/// A card in a process of its own, of a path that is gone afterwards.
class CardTest : public ::testing::Test {
 protected:
  ~CardTest() override {
    ::unlink(path_.c_str());
    const RevocationsFile last(path_);  // which killed cards left
  }

  /// Returns once it serves, or has ended.
  Child start_card(bool until_last_client = false, std::chrono::milliseconds linger = 50ms) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe");
    Child card([&] {
      ::close(ready[0]);
      try {
        Card own({.path = path_,
                  .cache = kCache,
                  .until_last_client = until_last_client,
                  .linger = linger,
                  .marks_stay = 100ms});
        const char word = 1;
        if (::write(ready[1], &word, 1) != 1) return false;
        ::close(ready[1]);
        own.run(stop_.get());
      } catch (const Error& error) {
        ::_exit(error.code().value());
      }
      return true;
    });
    ::close(ready[1]);
    char word = 0;
    while (::read(ready[0], &word, 1) < 0 && errno == EINTR) continue;
    ::close(ready[0]);
    return card;
  }
  void stop_cards() { ::eventfd_write(stop_.get(), 1); }
  [[nodiscard]] bool is_there() const { return ::access(path_.c_str(), F_OK) == 0; }

  /// A process that attaches, does something, and is killed.
  void killed_client(const std::function<void(Cache&)>& what) {
    SharedValue<std::atomic<bool>> done;
    Child client([&] {
      static Cache cache;
      if (cache.attach(path_.c_str())) return false;
      what(cache);
      *done = true;
      while (true) ::pause();
      return true;
    });
    while (!*done) ::usleep(1000);
    client.kill();
    client.wait();
  }
  static void wait_for(const std::function<bool()>& what) {
    while (!what()) ::usleep(1000);  // the test's watchdog ends it
  }

  std::string path_ = "/dev/shm/wherry-files-cardtest" + std::to_string(::getpid());
  UniqueFd stop_{::eventfd(0, EFD_CLOEXEC)};
  TestFile file_{4 * kBlockBytes};
};

TEST_F(CardTest, EndsWhatDeadClientsHadUnderWay) {
  Child card = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  const File opened = open_usable(cache, file_);
  const auto fills = [&](std::uint64_t block) { return fill_block(cache, opened, file_.descriptor(), block); };

  killed_client([&](Cache& theirs) { new Change(theirs, file_.key(), 0, 1); });
  wait_for([&] { return fills(0); });
  killed_client([&](Cache& theirs) { new Fill(theirs.fill(theirs.open(file_.key()), 1, Admission::first_touch)); });
  wait_for([&] { return fills(1); });
  killed_client([&](Cache& theirs) {
    new Fill(theirs.fill(theirs.open(file_.key()), 2, Admission::first_touch));
    theirs.drop(file_.key(), 2 * kBlockBytes, 1);
  });
  EXPECT_TRUE(fills(2));
  killed_client([&](Cache& theirs) { (void)theirs.mark(file_.key()); });
  EXPECT_FALSE(fills(3)) << "a child that it forked may not have marked yet";
  wait_for([&] { return fills(3); });
  killed_client([&](Cache& theirs) { (void)theirs.mark_all(); });
  wait_for([&] { return fills(0); });
  cache.detach();
  stop_cards();
  EXPECT_EQ(card.wait(), 0);
  EXPECT_FALSE(is_there());
}

TEST_F(CardTest, AsksForLargePagesBehindWhatWasFilledAndReadersSeeTheSameBytes) {
  constexpr std::size_t kBlocks = 2 * layout::kFileRunWanted;
  const TestFile file(kBlocks * kBlockBytes);
  Child card = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  const UniqueFd segment_file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  Segment segment;
  ASSERT_FALSE(map_segment(segment_file.get(), segment));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.block(0, 0)) % layout::kFileLargePage, 0U);
  const File opened = open_usable(cache, file);
  const auto is_asked_for = [&] { return (segment.run(0).load() & layout::kFileRunDone) != 0; };
  for (std::uint64_t block = 0; block + 1 < layout::kFileRunWanted; ++block) {
    ASSERT_TRUE(fill_block(cache, opened, file.descriptor(), block));
  }
  EXPECT_FALSE(is_asked_for());
  std::vector<std::byte> read(kBlockBytes);
  for (std::uint64_t block = layout::kFileRunWanted - 1; block < kBlocks; ++block) {
    ASSERT_TRUE(fill_block(cache, opened, file.descriptor(), block));
  }
  bool asked_for = false;
  do {
    asked_for = is_asked_for();
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      ASSERT_TRUE(cache.read(opened, block * kBlockBytes, read));
      ASSERT_TRUE(std::ranges::equal(read, file.content().subspan(block * kBlockBytes, kBlockBytes)));
    }
  } while (!asked_for);
  ::munmap(segment.base(), segment.bytes());
  cache.detach();
  stop_cards();
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(CardTest, OfTwoOneIsRefusedAndSaysSo) {
  Child card = start_card();
  Child other = start_card();
  EXPECT_EQ(other.wait(), EBUSY);
  EXPECT_TRUE(is_there());
  try {
    const Card third({.path = path_, .cache = kCache});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EBUSY);
    EXPECT_NE(std::string(error.what())
                  .find("another wherry card serves it; one is enough for all programs of a node and job"),
              std::string::npos);
  }
}

TEST_F(CardTest, TheNextOneTakesOverTheSegmentAndItsClients) {
  Child first = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  const File opened = open_usable(cache, file_);
  ASSERT_TRUE(fill_block(cache, opened, file_.descriptor(), 0));
  first.kill();
  first.wait();
  std::array<std::byte, 64> got{};
  EXPECT_TRUE(cache.read(opened, 0, got)) << "without a card";
  killed_client([&](Cache& theirs) { new Change(theirs, file_.key(), kBlockBytes, 1); });
  EXPECT_FALSE(fill_block(cache, opened, file_.descriptor(), 1));

  Child second = start_card();
  EXPECT_TRUE(cache.read(opened, 0, got)) << "it is the same segment";
  wait_for([&] { return fill_block(cache, opened, file_.descriptor(), 1); });
  killed_client([&](Cache& theirs) { new Change(theirs, file_.key(), 2 * kBlockBytes, 1); });
  wait_for([&] { return fill_block(cache, opened, file_.descriptor(), 2); });
  stop_cards();
  EXPECT_EQ(second.wait(), 0);
  EXPECT_TRUE(is_there()) << "it has a client";
  cache.detach();
}

/// As in a container that was started again, where the next card gets the number of a process that died.
TEST_F(CardTest, ADeadClientThatHadItsOwnNumberIsBuriedToo) {
  Child first = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  const File opened = open_usable(cache, file_);
  first.kill();
  first.wait();
  killed_client([&](Cache& theirs) { new Change(theirs, file_.key(), 0, 1); });
  ASSERT_FALSE(fill_block(cache, opened, file_.descriptor(), 0));
  const UniqueFd segment_file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  Segment segment;
  ASSERT_FALSE(map_segment(segment_file.get(), segment));
  const std::uint64_t dead = 2;  // this process is the first
  ASSERT_NE(segment.client(dead).pid.load(), 0U);
  Child card([&] {
    segment.client(dead).pid = static_cast<std::uint64_t>(::getpid());
    segment.client(dead).start = 1;
    Card own({.path = path_, .cache = kCache, .marks_stay = 10ms});
    own.run(stop_.get());
    return true;
  });
  wait_for([&] { return fill_block(cache, opened, file_.descriptor(), 0); });
  wait_for([&] { return segment.client(dead).pid == 0; });
  ::munmap(segment.base(), segment.bytes());
  cache.detach();
  stop_cards();
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(CardTest, ASegmentWithoutClientsIsMadeAnew) {
  Child first = start_card();
  killed_client([](Cache& theirs) { (void)theirs.mark_all(); });
  first.kill();
  first.wait();
  struct ::stat before{};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  Child second = start_card();
  struct ::stat after{};
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  EXPECT_TRUE(fill_block(cache, open_usable(cache, file_), file_.descriptor(), 0));
  cache.detach();
}

TEST_F(CardTest, EndsSomeTimeAfterItsLastClient) {
  Child first = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  first.kill();
  first.wait();
  Child card = start_card(true, 20ms);
  ::usleep(200'000);
  EXPECT_TRUE(is_there()) << "it has a client";
  cache.detach();
  EXPECT_EQ(card.wait(), 0);
  EXPECT_FALSE(is_there());
}

TEST_F(CardTest, StaysWhileAChildOfItsClientLives) {
  Child first = start_card();
  SharedValue<std::atomic<int>> step;
  Child client([&] {
    static Cache cache;
    if (cache.attach(path_.c_str())) return false;
    *step = 1;
    while (*step != 2) ::usleep(1000);
    if (::fork() == 0) {
      *step = cache.after_fork() ? 5 : 3;
      while (*step != 4) ::usleep(1000);
      ::_exit(0);
    }
    while (*step == 2) ::usleep(1000);
    return *step == 3;
  });
  wait_for([&] { return *step == 1; });
  first.kill();
  first.wait();
  Child card = start_card(true, 20ms);
  *step = 2;
  EXPECT_EQ(client.wait(), 0);
  ::usleep(200'000);
  EXPECT_TRUE(is_there()) << "the child is a client";
  *step = 4;
  EXPECT_EQ(card.wait(), 0);
  EXPECT_FALSE(is_there());
}

TEST_F(CardTest, IfItsFileIsRemovedNothingMoreIsServedFromIt) {
  Child card = start_card();
  Cache cache;
  ASSERT_FALSE(cache.attach(path_.c_str()));
  const File opened = open_usable(cache, file_);
  ASSERT_TRUE(fill_block(cache, opened, file_.descriptor(), 0));
  ::unlink(path_.c_str());
  EXPECT_EQ(card.wait(), 0);
  std::array<std::byte, 64> got{};
  EXPECT_FALSE(cache.read(opened, 0, got));
  EXPECT_FALSE(fill_block(cache, opened, file_.descriptor(), 0));
  cache.detach();
}

TEST_F(CardTest, WhatKeepsACardFromStartingIsSaid) {
  test::TemporaryDirectory directory;
  const std::string program = directory.path() / "program";
  {
    std::ofstream script(program);
    script << "#!/bin/sh\necho there is no room for \"$*\" >&2\nexit 1\n";
  }
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto said = [](const std::string& what) -> std::string {
    try {
      ensure_card(what);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  Child starter([&] {  // a job of its own
    ::setenv("WHERRY_JOB", ("card-test-" + std::to_string(::getpid())).c_str(), 1);
    return said(program).find("there is no room for card --until-last-client") != std::string::npos &&
           said("/no/such/program").find("/no/such/program: cannot be run") != std::string::npos;
  });
  EXPECT_EQ(starter.wait(), 0);
}

// A client that comes when the card decides to end is seen, or is refused.
TEST_F(CardTest, NoClientIsLeftOnASegmentThatLostItsName) {
  for (int round = 0; round < 20; ++round) {
    Child card = start_card(true, std::chrono::milliseconds(round % 4));
    Cache cache;
    const Refusal refusal = cache.attach(path_.c_str());
    if (!refusal) {
      ::usleep(5000);
      EXPECT_TRUE(is_there());
      cache.detach();
    } else {
      EXPECT_TRUE(refusal.error == EAGAIN || refusal.error == ENOENT) << refusal.reason;
    }
    EXPECT_EQ(card.wait(), 0);
    EXPECT_FALSE(is_there());
  }
}

}  // namespace
}  // namespace wherry::file
