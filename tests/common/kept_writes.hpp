// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <thread>

#include "file/mount/file_system.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {

/// A file system of a server of its own, with one open file.
class KeptWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path()) << "";
    if (!has_leases(path())) GTEST_SKIP() << "no leases here: " << std::strerror(errno);
    system_.tree().write_behind().start([this] { return system_.delegations().client(); });
    system_.delegations().start([](NodeId) {}, system_.tree().write_behind());
    if (system_.files().create(kRootNode, "file", 0644, O_RDWR, entry_, file_) != 0) FAIL() << "no file";
  }
  void TearDown() override {
    if (file_ != nullptr) system_.files().close(entry_.node, file_);
    system_.delegations().stop();
    system_.tree().write_behind().stop();
  }

  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  void write(std::uint64_t offset, std::string_view text) {
    const Result result =
        system_.files().write(entry_.node, *file_, offset, std::as_bytes(std::span(text)), OpenFiles::Write::kept);
    EXPECT_EQ(result.bytes, text.size()) << result;
  }
  void wait_for_client() {
    while (system_.delegations().client() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// Writes at the end until writes are held back. Returns the size.
  std::uint64_t write_until_kept(std::uint64_t size) {
    while (!system_.tree().write_behind().keeps(entry_.node)) {
      write(size, "12345678");
      size += 8;
    }
    return size;
  }

  ServedDirectory served_;
  FileSystem system_{served_.client(), 3, WriteBuffer::make(1 << 20)};
  Entry entry_;
  OpenFile* file_ = nullptr;
};

}  // namespace wherry::file::mount
