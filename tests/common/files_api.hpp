// SPDX-License-Identifier: Apache-2.0
// For tests of wherry::files: a card of their own, and processes that come to it as users' do.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include <wherry/files.hpp>

#include "base/child_process.hpp"
#include "base/scoped_environment.hpp"
#include "file/cache.hpp"
#include "file/process_cache.hpp"
#include "file/segment_file.hpp"

namespace wherry::file {

/// The cache of a card that no other test has. All processes made while it lives belong to its job, and their path of
/// reading is `auto`. It has no process of its own, and none can be started.
class TestCard {
 public:
  explicit TestCard(std::uint64_t bytes = std::uint64_t{32} << 20)
      : job_("WHERRY_JOB", new_job().c_str()), programs_("PATH", "/nonexistent"), reads_("WHERRY_FILE_PATH", "auto") {
    std::array<char, kPathBytes> path{};
    if (!segment_path(path)) throw std::runtime_error("no path");
    path_ = path.data();
    if (bytes != 0 && !make_segment(path_, bytes).valid()) throw std::runtime_error(path_ + " is there already");
  }
  TestCard(const TestCard&) = delete;
  TestCard& operator=(const TestCard&) = delete;
  ~TestCard() { ::unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static std::string new_job() {
    static std::atomic<int> number{0};
    return "files-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  }

  ScopedEnvironment job_;
  ScopedEnvironment programs_;
  ScopedEnvironment reads_;
  std::string path_;
};

/// Runs `body`, which has expectations, in a process that is a client of the card's for as long.
template <class Body>
Child client(Body body) {
  std::fflush(nullptr);
  return Child([body = std::move(body)]() mutable {
    body();
    std::fflush(nullptr);
    return !testing::Test::HasFailure();
  });
}

template <class Body>
void in_client(Body body) {
  EXPECT_EQ(client(std::move(body)).wait(), 0);
}

/// Waits until the file's stamp says that it was not changed a moment ago: before that nothing of it is cached. Of a
/// file that is not open to write.
inline void settle(const std::filesystem::path& path) {
  while (true) {
    const std::uint64_t now = Stamp::now();
    struct ::stat status{};
    if (::stat(path.c_str(), &status) != 0) throw std::runtime_error(path.string());
    if (Stamp(status, now, Writers::none).settled()) return;
    std::this_thread::yield();
  }
}

/// The same, of a file that is opened to write soon: the card has seen it without a writer. In a client.
inline void settle_for_writers(const std::filesystem::path& path) {
  settle(path);
  (void)wherry::files::open(path.string(), O_RDONLY);
}

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error(path.string());
}

}  // namespace wherry::file
