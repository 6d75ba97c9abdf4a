// SPDX-License-Identifier: Apache-2.0
#include "run/elf_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

// A text that the test finds in its own executable.
constexpr const char* kMark = "a text that only this program has in it";

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ask_everything(const std::filesystem::path& path) {
  const auto file = ElfFile::open(path);
  if (!file) return;
  (void)file->loader();
  (void)file->needed();
  EXPECT_FALSE(file->contains("\x01 no such text \x02"));
}

TEST(ElfFile, AProgramTellsItsLoaderItsLibrariesAndItsTexts) {
  const auto file = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(file);
  EXPECT_TRUE(std::filesystem::exists(file->loader())) << file->loader();
  EXPECT_THAT(file->needed(), testing::Contains("libc.so.6"));
  EXPECT_TRUE(file->contains(kMark));
  std::string other = kMark;
  other.back() = '?';
  EXPECT_FALSE(file->contains(other));
}

TEST(ElfFile, WhatIsNoSuchFileIsNotOpened) {
  const test::TemporaryDirectory folder;
  const auto script = folder.path() / "script";
  std::ofstream(script) << "#!/bin/sh\necho a script that is longer than the head of an ELF file, which has 64 bytes\n";
  for (const auto& path : {script, folder.path(), folder.path() / "none", std::filesystem::path("/dev/null")}) {
    EXPECT_FALSE(ElfFile::open(path)) << path;
  }
}

TEST(ElfFile, AFileThatIsCutOffOrDamagedIsReadWithoutHarm) {
  const test::TemporaryDirectory folder;
  const auto path = folder.path() / "damaged";
  const std::string whole = read_all("/bin/true");
  for (std::size_t size = 1; size < whole.size(); size += 1 + size / 3) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    ask_everything(path);
  }
  // The header and the table of segments, with all offsets, sizes and counts.
  for (std::size_t at = 4; at < std::min<std::size_t>(whole.size(), 64 + 16 * 56); at++) {
    std::string damaged = whole;
    damaged[at] = '\xff';
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    ask_everything(path);
  }
}

}  // namespace
}  // namespace wherry::tools
