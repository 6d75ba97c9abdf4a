// SPDX-License-Identifier: Apache-2.0
// The first file that a program opens: how it starts the card, whatever else the program does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <wherry/files.hpp>

#include "arch/barrier.hpp"
#include "base/unique_fd.hpp"
#include "file/cache_segment.hpp"
#include "file/process_cache.hpp"
#include "file/segment_file.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

/// Opens a file in a program whose PATH has a `wherry` that writes its standard input's name into a file.
class FirstOpen : public ::testing::Test {
 protected:
  FirstOpen() {
    std::ofstream(served_.outside() / "wherry")
        << "#!/bin/sh\nreadlink /proc/$$/fd/0 >> " << tried_.string() << "\necho no card today\n";
    std::filesystem::permissions(served_.outside() / "wherry", std::filesystem::perms::owner_all);
    write_file(path_, Pattern(1).bytes(10));
  }
  void expect_tried() const {
    const std::string tried = content_of(tried_);
    ASSERT_FALSE(tried.empty());
    for (std::size_t at = 0; at < tried.size(); at += 10) EXPECT_EQ(tried.substr(at, 10), "/dev/null\n");
  }

  const TestCard none_{0};
  const ServedDirectory served_;
  const std::filesystem::path tried_ = served_.outside() / "tried";
  const std::string path_ = served_.root() / "file";
  const ScopedEnvironment programs_{"PATH", (served_.outside().string() + ":/usr/bin:/bin").c_str()};
};

TEST_F(FirstOpen, OfAProgramWithoutStandardInputAndOutputStartsACardThatHasThem) {
  in_client([&] {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    EXPECT_TRUE(files::open(path_, O_RDONLY).is_open());
  });
  expect_tried();
}

volatile std::sig_atomic_t children_ended = 0;

TEST_F(FirstOpen, IsNoChildThatTheProgramSees) {
  in_client([&] {
    ::signal(SIGCHLD, [](int) { children_ended = children_ended + 1; });
    EXPECT_TRUE(files::open(path_, O_RDONLY).is_open());
    EXPECT_EQ(children_ended, 0);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  });
  expect_tried();
}

TEST_F(FirstOpen, DoesNotWaitForWhatOtherThreadsForkMeanwhile) {
  if (WHERRY_THREAD_SANITIZER != 0)
    GTEST_SKIP() << "a child by clone inherits the sanitizer's locks, held by other threads";
  in_client([&] {
    std::atomic<bool> over{false};
    std::vector<pid_t> children;
    std::thread forks([&] {
      while (!over && children.size() < 200) {
        const pid_t child = ::fork();
        if (child == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          while (true) ::pause();
        }
        children.push_back(child);
      }
      while (!over) ::usleep(1000);
    });
    EXPECT_TRUE(files::open(path_, O_RDONLY).is_open());
    over = true;
    forks.join();
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  });
  expect_tried();
}

TEST(Card, IsFoundByAProcessThatOpenedItsFilesBefore) {
  const TestCard none{0};
  const ServedDirectory served;
  const std::string path = served.root() / "file";
  const Pattern pattern(3);
  write_file(path, pattern.bytes(100'000));
  const SharedValue<std::atomic<int>> step;
  Child writer = client([&] {
    files::File file = files::open(path, O_RDWR, 0, {.path = files::Path::local});
    EXPECT_FALSE(process_cache(false).attached());
    *step = 1;
    while (*step < 2) ::usleep(1000);
    for (std::uint64_t at = 0; at < 50; ++at) {
      ::usleep(20'000);  // longer than it does not look
      EXPECT_EQ(file.pwrite(pattern.bytes(1000, at), 0).bytes, 1000U);
      *step = 3;
      while (*step == 3) ::usleep(1000);
    }
    EXPECT_TRUE(process_cache(false).attached());
  });
  while (*step < 1) ::usleep(1000);
  const UniqueFd card = make_segment(none.path(), std::uint64_t{32} << 20);
  settle(path);
  in_client([&] {
    files::File file = files::open(path, O_RDONLY, 0, {.path = files::Path::comp});
    std::vector<std::byte> got(1000);
    EXPECT_EQ(file.pread(got, 0).bytes, got.size());
    *step = 2;
    for (std::uint64_t at = 0; at < 50; ++at) {
      while (*step != 3) ::usleep(1000);
      EXPECT_EQ(file.pread(got, 0).bytes, got.size());
      EXPECT_TRUE(pattern.matches(got, at)) << at;
      *step = 4;
    }
  });
  EXPECT_EQ(writer.wait(), 0);
}

TEST(Card, HasAForkedChildForAClientThoughItDoesNothing) {
  const TestCard card;
  in_client([&] {
    Cache& cache = process_cache(false);
    const UniqueFd segment_file(::open(card.path().c_str(), O_RDWR | O_CLOEXEC));
    Segment segment;
    ASSERT_FALSE(map_segment(segment_file.get(), segment));
    const auto clients = [&] {
      int count = 0;
      for (std::uint64_t number = 1; number <= 10; ++number) count += segment.client(number).pid != 0 ? 1 : 0;
      return count;
    };
    ASSERT_TRUE(cache.attached());
    EXPECT_EQ(clients(), 1);
    in_client([&] { EXPECT_EQ(clients(), 2); });
  });
}

TEST(Card, ThatEndedWhileAChildWasForkedIsUsedNoMoreByIt) {
  const TestCard card;
  const ServedDirectory served;
  const std::string path = served.root() / "file";
  write_file(path, Pattern(3).bytes(100));
  in_client([&] {
    files::File file = files::open(path, O_RDWR, 0, {.path = files::Path::comp});
    const UniqueFd segment_file(::open(card.path().c_str(), O_RDWR | O_CLOEXEC));
    Segment segment;
    ASSERT_FALSE(map_segment(segment_file.get(), segment));
    segment.header().ended = 1;
    in_client([&] {
      EXPECT_FALSE(process_cache(false).attached());
      std::array<std::byte, 100> got;
      EXPECT_EQ(file.pread(got, 0).bytes, got.size());
      EXPECT_EQ(file.pwrite(got, 0).bytes, got.size());
      segment.header().ended = 0;
      EXPECT_FALSE(files::open(path, O_RDONLY).view(0, 1));
    });
  });
}

}  // namespace
}  // namespace wherry::file
