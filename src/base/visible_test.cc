// SPDX-License-Identifier: Apache-2.0
#include "base/visible.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/scoped_environment.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry {
namespace {

Sight look(const std::filesystem::path& path) { return look_at(AT_FDCWD, path.c_str(), 0); }

class Visible : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    chmod(path.c_str(), 0755);
    return path;
  }

  static std::string program() {
    std::ifstream file("/bin/true", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The same program, with each segment of one type changed to another type.
  static std::string with_segments(Elf64_Word from, Elf64_Word to) {
    std::string file = program();
    auto* const header = reinterpret_cast<Elf64_Ehdr*>(file.data());
    auto* const segments = reinterpret_cast<Elf64_Phdr*>(file.data() + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
      if (segments[i].p_type == from) segments[i].p_type = to;
    }
    return file;
  }

  test::TemporaryDirectory folder_;
};

TEST_F(Visible, AProgramOfDebiansIsSeen) {
  EXPECT_EQ(look("/bin/true"), Sight::seen);
  EXPECT_EQ(look("/proc/self/exe"), Sight::seen);
}

TEST_F(Visible, AProgramWithoutALoaderIsNot) {
  EXPECT_EQ(look(write("static", with_segments(PT_INTERP, PT_NULL))), Sight::unseen);
}

TEST_F(Visible, AProgramOfGoIsNotThoughItHasALoader) {
  std::string file = with_segments(PT_NULL, PT_NULL);
  auto* const header = reinterpret_cast<Elf64_Ehdr*>(file.data());
  auto* const segments = reinterpret_cast<Elf64_Phdr*>(file.data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type != PT_NOTE) continue;
    auto* const note = reinterpret_cast<Elf64_Nhdr*>(file.data() + segments[i].p_offset);
    note->n_namesz = 4;
    file.replace(segments[i].p_offset + sizeof(Elf64_Nhdr), 4, std::string("Go\0\0", 4));
  }
  EXPECT_EQ(look(write("go", file)), Sight::unseen);
}

TEST_F(Visible, AProgramOfAnotherLoaderIsForeign) {
  std::string file = program();
  const std::size_t at = file.find("/ld-linux");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 9, "/ld-musl-");
  EXPECT_EQ(look(write("musl", file)), Sight::foreign);
}

TEST_F(Visible, AProgramOfAnotherUserThatSetsItsIdIsNot) {
  const auto path = write("other", program());
  if (chown(path.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  chmod(path.c_str(), 04755);
  EXPECT_EQ(look(path), Sight::unseen);
  chmod(path.c_str(), 0755);
  EXPECT_EQ(look(path), Sight::seen);
}

TEST_F(Visible, AScriptIsSeenIfItsInterpreterIs) {
  EXPECT_EQ(look(write("seen", "#! /bin/sh -e\ntrue\n")), Sight::seen);
  const auto unseen = write("static", with_segments(PT_INTERP, PT_NULL));
  const auto script = write("script", "#!" + unseen.string() + "\n");
  EXPECT_EQ(look(script), Sight::unseen);
  EXPECT_EQ(look(write("nested", "#!" + script.string() + " x\n")), Sight::unseen);
}

TEST_F(Visible, AScriptThatNamesItselfEnds) {
  EXPECT_EQ(look(write("self", "#!" + (folder_.path() / "self").string() + "\n")), Sight::unseen);
}

TEST_F(Visible, WhatIsNoProgramOrIsCutOffIsNot) {
  EXPECT_EQ(look(folder_.path()), Sight::unseen);
  EXPECT_EQ(look(folder_.path() / "none"), Sight::unseen);
  const std::string whole = program();
  // A size within its header and the table of its segments.
  for (std::size_t size = 0; size < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); size += 13) {
    EXPECT_EQ(look(write("part", whole.substr(0, size))), Sight::unseen) << size;
  }
}

TEST_F(Visible, ADescriptorIsLookedAtLikeAName) {
  const int fd = open("/bin/true", O_PATH | O_CLOEXEC);
  EXPECT_EQ(look_at(fd, nullptr, 0), Sight::seen);
  EXPECT_EQ(look_at(fd, "", AT_EMPTY_PATH), Sight::seen);
  EXPECT_EQ(look_at(fd, "", 0), Sight::unseen);
  close(fd);
}

TEST_F(Visible, ANameIsFoundWhereExecvpFindsIt) {
  write("tool", "#!/bin/sh\n");
  chmod(write("data", "").c_str(), 0600);
  const ScopedEnvironment path("PATH", ("/nowhere:" + folder_.path().string() + ":/bin").c_str());
  std::array<char, PATH_MAX> room{};
  EXPECT_EQ(find_in_path("tool", room.data()), folder_.path() / "tool");
  EXPECT_EQ(find_in_path("true", room.data()), std::string("/bin/true"));
  EXPECT_EQ(find_in_path("./x", room.data()), std::string("./x"));
  EXPECT_EQ(find_in_path("data", room.data()), nullptr);
  EXPECT_EQ(find_in_path("none", room.data()), nullptr);
}

}  // namespace
}  // namespace wherry
