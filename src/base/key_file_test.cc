// SPDX-License-Identifier: Apache-2.0
#include "base/key_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <wherry/error.hpp>

namespace wherry {
namespace {

using testing::HasSubstr;

class KeyFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "key-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ + "/key";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string refusal(int expected) const {
    try {
      (void)read_key_file(file_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), expected);
      return error.what();
    }
    ADD_FAILURE() << "the key was read";
    return "";
  }

  std::string folder_;
  std::string file_;
};

TEST_F(KeyFile, IsPrivateAndReadAgain) {
  make_key_file(file_);
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const Key key = read_key_file(file_);
  EXPECT_EQ(read_key_file(file_), key);
  EXPECT_NE(key, Key{});
  make_key_file(file_ + "2");
  EXPECT_NE(read_key_file(file_ + "2"), key);
}

TEST_F(KeyFile, IsNotOverwritten) {
  make_key_file(file_);
  const Key key = read_key_file(file_);
  try {
    make_key_file(file_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EEXIST);
    EXPECT_THAT(error.what(), HasSubstr("a key is never overwritten; use another name, or remove the file first"));
  }
  EXPECT_EQ(read_key_file(file_), key);
}

TEST_F(KeyFile, ThatOthersMayReadIsRefused) {
  make_key_file(file_);
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  EXPECT_THAT(refusal(EACCES), HasSubstr("other users may read or write the key; make it private: chmod 600 " + file_));
}

TEST_F(KeyFile, OfAnotherUserIsRefused) {
  make_key_file(file_);
  if (::geteuid() != 0 || ::chown(file_.c_str(), 1, 1) != 0) GTEST_SKIP() << "this user cannot give a file away";
  EXPECT_THAT(refusal(EACCES), HasSubstr("the file belongs to user 1; use a copy of your own"));
}

TEST_F(KeyFile, HasToBeAFile) {
  ASSERT_EQ(::mkdir(file_.c_str(), 0700), 0);
  EXPECT_THAT(refusal(EINVAL), HasSubstr("WHERRY_KEY names a file made by wherry key"));
}

TEST_F(KeyFile, IsNotLeftHalfWritten) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  std::string text;
  try {
    make_key_file(file_);
  } catch (const Error& error) {
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)::signal(SIGXFSZ, handler);
  EXPECT_THAT(text, HasSubstr("free space there, or name another directory"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(KeyFile, ThatIsNotThereSaysHowToMakeOne) {
  EXPECT_THAT(refusal(ENOENT), HasSubstr("make one with: wherry key " + file_));
}

TEST_F(KeyFile, ThatHoldsSomethingElseIsRefused) {
  make_key_file(file_);
  const std::string good = [this] {
    std::ifstream in(file_);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  const auto hold = [this](const std::string& text) { std::ofstream(file_, std::ios::trunc) << text; };
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", good.substr(0, good.size() - 2) + "x\n",
                                 good.substr(0, good.size() - 2)}) {
    hold(bad);
    EXPECT_THAT(refusal(EINVAL), HasSubstr("the file holds no key; make one with: wherry key FILE")) << bad;
  }
  hold(good.substr(0, good.size() - 1));  // an editor may remove the newline
  EXPECT_NO_THROW((void)read_key_file(file_));
}

}  // namespace
}  // namespace wherry
