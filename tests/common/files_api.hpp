// SPDX-License-Identifier: Apache-2.0
// For tests of wherry::files: processes that use it.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/child_process.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {

/// Runs `body`, which has expectations, in a process of its own.
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

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error(path.string());
}

/// A directory whose files have a path of this machine and a name of a host.
class ServedFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return (served_.root() / name).string(); }
  [[nodiscard]] std::string url(const std::string& name) const { return served_.address() + "/" + name; }
  void make(const std::string& name, std::size_t bytes) const { write_file(path(name), pattern_.bytes(bytes)); }

  const Pattern pattern_{5};
  const ServedDirectory served_;
};

}  // namespace wherry::file
