// SPDX-License-Identifier: Apache-2.0
// wherry::files of an unreachable host: a call waits exactly as long as configured.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include <wherry/files.hpp>

#include "base/child_process.hpp"
#include "file/server/server.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {
namespace {

using files::Path;
using namespace std::chrono_literals;

/// A server that is not restarted.
class Mortal {
 public:
  explicit Mortal(const std::filesystem::path& root)
      : server_([this, root] {
          Server server({.root = root.string(), .listen = "wherry+shm://*:*", .threads = 1, .lends = false});
          std::strncpy(address_->data(), server.address().c_str(), address_->size() - 1);
          *ready_ = true;
          server.run();
          return true;
        }) {
    while (!*ready_) ::usleep(100);
  }
  [[nodiscard]] std::string address() const { return address_->data(); }
  void kill() {
    server_.kill();
    server_.wait();
  }

 private:
  SharedValue<std::array<char, 128>> address_;
  SharedValue<std::atomic<bool>> ready_;
  Child server_;
};

TEST(FilesTimeout, IsThatOfACallAndNotOfEachOfItsParts) {
  const test::TemporaryDirectory directory;
  write_file(directory.path() / "file", Pattern(1).bytes(100'000));
  Mortal server(directory.path());
  in_client([&] {
    const files::Options options{.timeout = 50ms};
    files::File file = files::open(server.address() + "/file", O_RDONLY, 0, options);
    std::vector<std::byte> got(50'000);
    EXPECT_EQ(file.pread(got, 0).bytes, got.size());
    server.kill();
    const iovec buffer{got.data(), got.size()};
    EXPECT_EQ(file.pread(got, 0).error, EIO);
    EXPECT_EQ(file.preadv({&buffer, 1}, 0).error, EIO);
    EXPECT_EQ(file.pread(got, 0, Path::host).error, EIO);
  });
}

}  // namespace
}  // namespace wherry::file
