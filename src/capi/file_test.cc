// SPDX-License-Identifier: Apache-2.0
// The files of wherry.h as a C program uses them. src/file tests the guarantees of files themselves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <wherry/wherry.h>

#include "tests/common/files_api.hpp"
#include "tests/common/served_directory.hpp"

namespace {

using ::testing::HasSubstr;
using wherry::file::in_client;
using wherry::file::ServedDirectory;

class CFiles : public ::testing::Test {
 protected:
  const ServedDirectory served_;
  const std::string path_ = (served_.root() / "file").string();
  const std::string url_ = served_.address() + "/file";
};

TEST_F(CFiles, WhatIsWrittenIsReadOnEachPath) {
  for (const std::string& name : {path_, url_}) {
    in_client([&] {
      wherry_file file = WHERRY_NONE;
      const wherry_file_options options{.path = WHERRY_PATH_AUTO, .timeout_ms = 1000, .reserved = {}};
      ASSERT_EQ(wherry_file_open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644, &options, &file), 0)
          << wherry_last_error();
      EXPECT_EQ(wherry_file_pwrite(file, "hello, world", 12, 3, WHERRY_PATH_AS_SET), 12);
      std::array<char, 16> text{};
      const bool remote = name == url_;
      for (int path = WHERRY_PATH_AS_SET; path <= WHERRY_PATH_HOST; ++path) {
        const bool has = path == WHERRY_PATH_AS_SET || path == WHERRY_PATH_AUTO ||
                         (remote ? path == WHERRY_PATH_HOST : path == WHERRY_PATH_KERNEL || path == WHERRY_PATH_CACHE);
        EXPECT_EQ(wherry_file_pread(file, text.data(), text.size(), 3, path), has ? 12 : -EOPNOTSUPP) << path;
        EXPECT_STREQ(text.data(), "hello, world");
      }
      const iovec parts[] = {{text.data(), 2}, {text.data() + 2, 14}};
      EXPECT_EQ(wherry_file_preadv(file, parts, 2, 10, WHERRY_PATH_AS_SET), 5);
      EXPECT_EQ(std::string(text.data(), 5), "world");
      const iovec again[] = {{text.data(), 5}, {text.data(), 5}};
      EXPECT_EQ(wherry_file_pwritev(file, again, 2, 0, WHERRY_PATH_AS_SET), 10);
      EXPECT_EQ(wherry_file_sync(file, 0), 0);
      EXPECT_EQ(wherry_file_sync(file, 1), 0);
      EXPECT_EQ(wherry_file_set_size(file, 10), 0);
      wherry_file_status status{};
      EXPECT_EQ(wherry_file_stat(file, &status), 0);
      EXPECT_EQ(status.size, 10U);
      EXPECT_EQ(wherry_file_pread(file, text.data(), 16, 10, WHERRY_PATH_AS_SET), 0) << "the end";
      EXPECT_EQ(wherry_file_append(file, "x", 1), -EINVAL);
      EXPECT_EQ(wherry_file_close(file), 0);
    });
    EXPECT_EQ(wherry::file::content_of(path_), "worldworld");
  }
}

TEST_F(CFiles, AViewShowsTheFile) {
  wherry::file::write_file(path_, std::vector<std::byte>(1000, std::byte{'a'}));
  in_client([&] {
    wherry_file file = WHERRY_NONE;
    ASSERT_EQ(wherry_file_open(path_.c_str(), O_RDWR, 0, nullptr, &file), 0) << wherry_last_error();
    const void* view = nullptr;
    ASSERT_EQ(wherry_file_view(file, 10, 100, &view), 100);
    EXPECT_EQ(static_cast<const char*>(view)[99], 'a');
    EXPECT_EQ(wherry_file_pwrite(file, "b", 1, 109, WHERRY_PATH_AS_SET), 1);
    EXPECT_EQ(static_cast<const char*>(view)[99], 'b');
    EXPECT_EQ(wherry_file_view(file, 1000, 1, &view), 0);
    EXPECT_EQ(wherry_file_view(file, 0, 1, nullptr), -EINVAL);
    EXPECT_EQ(wherry_file_close(file), 0);
  });
}

TEST_F(CFiles, AppendsAndPathsAreAsInCpp) {
  in_client([&] {
    wherry_file file = WHERRY_NONE;
    ASSERT_EQ(wherry_file_open(url_.c_str(), O_RDWR | O_CREAT | O_APPEND, 0644, nullptr, &file), 0);
    EXPECT_EQ(wherry_file_append(file, "ab", 2), 2);
    EXPECT_EQ(wherry_file_pwrite(file, "ab", 2, 0, WHERRY_PATH_AS_SET), -EINVAL);
    EXPECT_EQ(wherry_file_set_path(file, WHERRY_PATH_KERNEL), 0);
    char byte = 0;
    EXPECT_EQ(wherry_file_pread(file, &byte, 1, 0, WHERRY_PATH_AS_SET), -EOPNOTSUPP);
    EXPECT_EQ(wherry_file_pread(file, &byte, 1, 0, WHERRY_PATH_HOST), 1);
    EXPECT_EQ(wherry_file_set_path(file, WHERRY_PATH_AS_SET), -EINVAL);
    EXPECT_EQ(wherry_file_pread(file, &byte, 1, 0, 6), -EINVAL);
    EXPECT_EQ(wherry_file_close(file), 0);
  });
}

TEST_F(CFiles, WhatMakesNoSenseIsAnErrorInWords) {
  in_client([&] {
    wherry_file file = WHERRY_NONE;
    EXPECT_EQ(wherry_file_open(nullptr, O_RDONLY, 0, nullptr, &file), -EINVAL);
    EXPECT_THAT(wherry_last_error(), HasSubstr("the pointer for the result is NULL"));
    const wherry_file_options unknown{.path = 17, .timeout_ms = 0, .reserved = {}};
    EXPECT_EQ(wherry_file_open(path_.c_str(), O_RDONLY, 0, &unknown, &file), -EINVAL);
    EXPECT_THAT(wherry_last_error(), HasSubstr("unknown values, or reserved fields that are not zero"));
    EXPECT_EQ(wherry_file_open(path_.c_str(), O_RDONLY, 0, nullptr, &file), -ENOENT);
    EXPECT_THAT(wherry_last_error(), HasSubstr("O_CREAT creates the file"));
    char byte = 0;
    wherry_file_status status;
    const void* view = nullptr;
    EXPECT_EQ(wherry_file_pread(file, &byte, 1, 0, 0), -EBADF);
    EXPECT_EQ(wherry_file_pwrite(file, &byte, 1, 0, 0), -EBADF);
    EXPECT_EQ(wherry_file_append(file, &byte, 1), -EBADF);
    EXPECT_EQ(wherry_file_sync(file, 0), -EBADF);
    EXPECT_EQ(wherry_file_set_size(file, 0), -EBADF);
    EXPECT_EQ(wherry_file_stat(file, &status), -EBADF);
    EXPECT_EQ(wherry_file_view(file, 0, 1, &view), -EBADF);
    EXPECT_EQ(wherry_file_set_path(file, WHERRY_PATH_AUTO), -EBADF);
    EXPECT_EQ(wherry_file_close(file), -EBADF);
    EXPECT_EQ(wherry_file_preadv(file, nullptr, 2, 0, 0), -EINVAL);
  });
}

}  // namespace
