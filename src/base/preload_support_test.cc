// SPDX-License-Identifier: Apache-2.0
#include "base/preload_support.hpp"

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

PreloadSupport look(const std::filesystem::path& path) { return preload_support_of(AT_FDCWD, path.c_str(), 0); }

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
  EXPECT_EQ(look("/bin/true"), PreloadSupport::supported);
  EXPECT_EQ(look("/proc/self/exe"), PreloadSupport::supported);
}

TEST_F(Visible, AProgramWithoutALoaderIsNot) {
  EXPECT_EQ(look(write("static", with_segments(PT_INTERP, PT_NULL))), PreloadSupport::ignored);
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
  EXPECT_EQ(look(write("go", file)), PreloadSupport::ignored);
}

TEST_F(Visible, AProgramOfAnotherLoaderIsForeign) {
  std::string file = program();
  const std::size_t at = file.find("/ld-linux");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 9, "/ld-musl-");
  EXPECT_EQ(look(write("musl", file)), PreloadSupport::incompatible);
}

TEST_F(Visible, AProgramOfAnotherUserThatSetsItsIdIsNot) {
  const auto path = write("other", program());
  if (chown(path.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  chmod(path.c_str(), 04755);
  EXPECT_EQ(look(path), PreloadSupport::ignored);
  chmod(path.c_str(), 0755);
  EXPECT_EQ(look(path), PreloadSupport::supported);
}

TEST_F(Visible, AScriptIsSeenIfItsInterpreterIs) {
  EXPECT_EQ(look(write("seen", "#! /bin/sh -e\ntrue\n")), PreloadSupport::supported);
  const auto ignored = write("static", with_segments(PT_INTERP, PT_NULL));
  const auto script = write("script", "#!" + ignored.string() + "\n");
  EXPECT_EQ(look(script), PreloadSupport::ignored);
  EXPECT_EQ(look(write("nested", "#!" + script.string() + " x\n")), PreloadSupport::ignored);
}

TEST_F(Visible, AScriptThatNamesItselfEnds) {
  EXPECT_EQ(look(write("self", "#!" + (folder_.path() / "self").string() + "\n")), PreloadSupport::ignored);
}

TEST_F(Visible, WhatIsNoProgramOrIsCutOffIsNot) {
  EXPECT_EQ(look(folder_.path()), PreloadSupport::ignored);
  EXPECT_EQ(look(folder_.path() / "none"), PreloadSupport::ignored);
  const std::string whole = program();
  // A size within its header and the table of its segments.
  for (std::size_t size = 0; size < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); size += 13) {
    EXPECT_EQ(look(write("part", whole.substr(0, size))), PreloadSupport::ignored) << size;
  }
}

TEST_F(Visible, ADescriptorIsLookedAtLikeAName) {
  const int fd = open("/bin/true", O_PATH | O_CLOEXEC);
  EXPECT_EQ(preload_support_of(fd, nullptr, 0), PreloadSupport::supported);
  EXPECT_EQ(preload_support_of(fd, "", AT_EMPTY_PATH), PreloadSupport::supported);
  EXPECT_EQ(preload_support_of(fd, "", 0), PreloadSupport::ignored);
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
