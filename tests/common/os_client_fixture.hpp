// SPDX-License-Identifier: Apache-2.0
// A card in a process of its own, and a client of its path os.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "base/child_process.hpp"
#include "file/card.hpp"
#include "file/card_server.hpp"
#include "file/os_client.hpp"
#include "file/revocations_file.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {

inline constexpr std::size_t kBytes = 300'000;

inline layout::FileHello hello_with(std::uint64_t token) {
  layout::FileHello hello{};
  hello.version = layout::kFileVersion;
  hello.magic = layout::kFileMagic;
  hello.token = token;
  return hello;
}

inline iovec buffer_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

class OsPath : public ::testing::Test {
 protected:
  ~OsPath() override {
    ::unlink(path_.c_str());
    const RevocationsFile last(path_);  // which killed cards left
  }

  /// In a process of its own. Returns once it serves.
  Child start_card(bool until_last_client = false) {
    plan_->ready = false;
    Child card([&, until_last_client] {
      Card own({.path = path_,
                .cache = kCache,
                .until_last_client = until_last_client,
                .linger = std::chrono::milliseconds(50),
                .marks_stay = std::chrono::milliseconds(50)});
      const CardServer server(path_, plan_->faults.at());
      plan_->ready = true;
      own.run(stop_.get());
      return true;
    });
    while (!plan_->ready) ::usleep(1000);
    return card;
  }
  /// As a caller does that is not served.
  void read_and_compare(OsFile& file, std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> back(bytes);
    const iovec buffer = buffer_of(back);
    const auto result = file.read(offset, std::span(&buffer, 1));
    if (!result) return;
    ++served_;
    const auto there = data_.content().subspan(offset, std::min<std::size_t>(bytes, data_.content().size() - offset));
    ASSERT_EQ(result->bytes, there.size());
    ASSERT_TRUE(std::ranges::equal(there, std::span(back).first(there.size())));
  }
  /// As a caller does: the kernel's call, and noted.
  void write(std::uint64_t offset, std::size_t bytes, std::byte value) {
    const Change change(cache_, data_.key(), offset, bytes);
    data_.write(offset, std::vector<std::byte>(bytes, value));
  }

  static constexpr std::uint64_t kCache = std::uint64_t{4} << 20;
  struct Plan {
    FaultPlan faults;
    std::atomic<bool> ready{false};
  };
  std::string path_ = "/dev/shm/wherry-files-ostest" + std::to_string(::getpid());
  UniqueFd stop_{::eventfd(0, EFD_CLOEXEC)};
  SharedValue<Plan> plan_;
  TestFile data_{kBytes};
  Cache cache_;
  int served_ = 0;
};

}  // namespace wherry::file
