// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/read_policy.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/common/in_child.hpp"

namespace wherry::file::mapped {
namespace {

using test::in_child;

constexpr std::uint64_t kKiB = 1024;

/// A mapped file of several spans on tmpfs, with all of its pages in memory.
class Policy : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
    fd_ = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0) GTEST_SKIP() << "no tmpfs";
    const std::string content(3 * kSpan, 'x');
    ASSERT_EQ(::pwrite(fd_, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  }
  void TearDown() override {
    if (fd_ >= 0) ::close(fd_);
  }
  void map(MappedFile& file) const {
    struct ::stat status{};
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_EQ(::fstat(fd_, &status), 0);
    ASSERT_TRUE(file.map(fd_, status, 0, nullptr));
    ASSERT_EQ(file.refresh(fd_, file.truncations()), MappedFile::Look::usable);
  }

  int fd_ = -1;
};

TEST_F(Policy, ShortReadsInOrderAreMadeInPlaceAtOnce) {
  in_child([this] {
    MappedFile file;
    map(file);
    ReadPolicy reader;
    for (std::uint64_t offset = 0; offset < 3 * kSpan; offset += 4 * kKiB) {
      ASSERT_TRUE(reader.in_place(file, offset, 4 * kKiB)) << offset;
    }
  });
}

TEST_F(Policy, LongReadsAreMadeInPlaceTheSecondTime) {
  in_child([this] {
    for (const std::uint64_t bytes : {16 * kKiB, 48 * kKiB, 64 * kKiB, 256 * kKiB}) {
      MappedFile file;
      map(file);
      ReadPolicy reader;
      for (std::uint64_t offset = 0; offset + bytes <= 3 * kSpan; offset += bytes) {
        ASSERT_FALSE(reader.in_place(file, offset, bytes)) << bytes << " " << offset;
      }
      for (std::uint64_t offset = 0; offset + bytes <= 3 * kSpan; offset += bytes) {
        ASSERT_TRUE(reader.in_place(file, offset, bytes)) << bytes << " " << offset;
      }
      file.drop(0);
    }
  });
}

TEST_F(Policy, ReadsOutOfOrderAreMadeInPlaceWhereTheirPartWasReadBefore) {
  in_child([this] {
    MappedFile file;
    map(file);
    ReadPolicy reader;
    EXPECT_FALSE(reader.in_place(file, 1000 * kKiB, 512));
    EXPECT_FALSE(reader.in_place(file, 100 * kKiB, 512));
    EXPECT_TRUE(reader.in_place(file, 1001 * kKiB, 512));
    EXPECT_FALSE(reader.in_place(file, 3000 * kKiB, 512));
  });
}

TEST_F(Policy, AnotherMappingOfTheFileWasNotReadBefore) {
  in_child([this] {
    for (int i = 0; i < 2; i++) {
      MappedFile file;
      map(file);
      ReadPolicy reader;
      EXPECT_FALSE(reader.in_place(file, 1000 * kKiB, 512));
      EXPECT_TRUE(reader.in_place(file, 1000 * kKiB, 512));
      file.drop(0);
    }
  });
}

TEST_F(Policy, WhereTheFileHasNotAllPagesInMemoryAReaderInOrderIsTheKernels) {
  in_child([this] {
    MappedFile file;
    map(file);
    // The second span begins with a hole: no page.
    ASSERT_EQ(::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kSpan, 64 * kKiB), 0);
    ReadPolicy reader;
    for (std::uint64_t offset = 0; offset < 3 * kSpan; offset += 4 * kKiB) {
      ASSERT_EQ(reader.in_place(file, offset, 4 * kKiB), offset / kSpan != 1) << offset;
    }
  });
}

}  // namespace
}  // namespace wherry::file::mapped
