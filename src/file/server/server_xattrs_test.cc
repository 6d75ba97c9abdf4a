// SPDX-License-Identifier: Apache-2.0
// Extended attributes, as clients see them.
#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

class FileXattrs : public ::testing::Test {
 protected:
  FileXattrs() { std::ofstream(served_.root() / "file") << "text"; }
  void SetUp() override {
    if (::setxattr(served_.root().c_str(), "user.probe", "", 0, 0) != 0) GTEST_SKIP() << "no extended attributes here";
  }
  [[nodiscard]] std::string get(const HostXattrs::Target& target, std::string_view attribute) {
    std::vector<std::byte> value;
    const int error = host_.xattrs().get(target, attribute, value);
    return error != 0 ? "error " + std::to_string(error) : text_of(value);
  }
  static std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ServedDirectory served_;
  Host host_{served_.client()};
  const HostXattrs::Target file_{.handle = 0, .name = "file"};
};

TEST_F(FileXattrs, AreReachedByNameAndByHandle) {
  const HostXattrs::Target open{.handle = host_.open("file", layout::kFileOpenRead).handle};
  EXPECT_EQ(host_.xattrs().set(file_, "user.name", as_data("by name")), 0);
  EXPECT_EQ(host_.xattrs().set(open, "user.handle", as_data("by handle")), 0);
  EXPECT_EQ(host_.xattrs().set(file_, "user.empty", {}), 0);
  EXPECT_EQ(get(open, "user.name"), "by name");
  EXPECT_EQ(get(file_, "user.handle"), "by handle");
  EXPECT_EQ(get(file_, "user.empty"), "");
  std::vector<std::byte> names;
  EXPECT_EQ(host_.xattrs().list(open, names), 0);
  EXPECT_EQ(names.size(), std::string("user.name user.handle user.empty ").size());
  std::filesystem::remove(served_.root() / "file");
  EXPECT_EQ(host_.xattrs().remove(open, "user.name"), 0);
  EXPECT_EQ(host_.xattrs().remove(open, "user.name"), ENODATA);
  EXPECT_EQ(get(file_, "user.handle"), "error " + std::to_string(ENOENT));
}

TEST_F(FileXattrs, OfOtherNamespacesAreRefusedByTheServer) {
  ::setxattr((served_.root() / "file").c_str(), "trusted.x", "", 0, 0);  // only root may do this
  for (const char* const name : {"security.capability", "system.posix_acl_access", "trusted.x", "user", ""}) {
    EXPECT_EQ(host_.xattrs().set(file_, name, as_data("x")), EOPNOTSUPP) << name;
    EXPECT_EQ(get(file_, name), "error " + std::to_string(EOPNOTSUPP)) << name;
    EXPECT_EQ(host_.xattrs().remove(file_, name), EOPNOTSUPP) << name;
  }
  std::vector<std::byte> names;
  EXPECT_EQ(host_.xattrs().list(file_, names), 0);
  EXPECT_TRUE(names.empty());
}

TEST_F(FileXattrs, WhatTheServerWouldRefuseIsAnErrorAndTheNextRequestIsServed) {
  using namespace std::string_view_literals;
  const std::vector<std::byte> longest(layout::kFileMaxXattr + 1);
  EXPECT_EQ(host_.xattrs().set(file_, "user.long", longest), E2BIG);
  EXPECT_NE(host_.xattrs().set(file_, "user.long", std::span(longest).first(layout::kFileMaxXattr)), E2BIG);
  EXPECT_EQ(host_.xattrs().set(file_, "user.zero\0x"sv, as_data("x")), EINVAL);
  EXPECT_EQ(host_.xattrs().set({.handle = 0, .name = "file\0x"sv}, "user.x", as_data("x")), EINVAL);
  EXPECT_EQ(host_.xattrs().set(file_, "user.x", as_data("x"), 8), EINVAL);
  EXPECT_EQ(host_.xattrs().set({.handle = 77}, "user.x", as_data("x")), EBADF);
  EXPECT_EQ(host_.xattrs().set(file_, std::string(5000, 'n'), as_data("x")), ENAMETOOLONG);
  EXPECT_EQ(host_.xattrs().set(file_, "user." + std::string(300, 'n'), as_data("x")), ERANGE);
  EXPECT_EQ(host_.xattrs().set({.handle = 0, .name = "../outside"}, "user.x", as_data("x")), EXDEV);
  EXPECT_EQ(host_.xattrs().set(file_, "user.x", as_data("value")), 0);
  EXPECT_EQ(get(file_, "user.x"), "value");
}

TEST_F(FileXattrs, ARepeatedRequestIsNotMistakenForAnotherProgramS) {
  EXPECT_EQ(host_.xattrs().set(file_, "user.kept", as_data("old")), 0);
  served_.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host_.xattrs().set(file_, "user.new", as_data("new"), layout::kFileXattrCreate), EIO);
  EXPECT_EQ(get(file_, "user.new"), "new");
  served_.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host_.xattrs().set(file_, "user.kept", as_data("now"), layout::kFileXattrReplace), 0);
  EXPECT_EQ(get(file_, "user.kept"), "now");
  served_.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host_.xattrs().remove(file_, "user.kept"), 0);
  EXPECT_EQ(get(file_, "user.kept"), "error " + std::to_string(ENODATA));
  EXPECT_EQ(served_.deaths(), 3);
}

}  // namespace
}  // namespace wherry::file
