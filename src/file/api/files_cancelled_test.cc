// SPDX-License-Identifier: Apache-2.0
// pthread_cancel of a thread in a call of wherry::files, or just before one: it takes effect after the call.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <functional>
#include <vector>

#include <wherry/files.hpp>

#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using files::Path;

struct Call {
  std::function<void()> body;
  bool returned = false;
};

void* run(void* argument) {
  auto& call = *static_cast<Call*>(argument);
  ::pthread_cancel(::pthread_self());
  call.body();
  call.returned = true;
  ::pthread_testcancel();
  return nullptr;
}

/// Runs `body` in a thread with a pending cancellation, which would end it at the first cancellation point.
void expect_to_return(const char* name, std::function<void()> body) {
  Call call{.body = std::move(body)};
  pthread_t thread{};
  void* result = nullptr;
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, &call), 0);
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_TRUE(call.returned) << name;
  EXPECT_EQ(result, PTHREAD_CANCELED) << name << ": and it was cancelled then";
}

void use_cancelled(const std::string& name) {
  const files::Options options{.timeout = std::chrono::milliseconds(100)};
  files::File file;
  std::vector<std::byte> bytes(20'000);
  const iovec buffer{bytes.data(), bytes.size()};
  files::Status status;
  expect_to_return("open", [&] { file = files::open(name, O_RDWR | O_CREAT, 0600, options); });
  expect_to_return("pread", [&] { (void)file.pread(bytes, 0); });
  expect_to_return("pread of the cache", [&] { (void)file.pread(bytes, 0, Path::cache); });
  expect_to_return("preadv", [&] { (void)file.preadv({&buffer, 1}, 10'000); });
  expect_to_return("pwrite", [&] { (void)file.pwrite(bytes, 0); });
  expect_to_return("set_size", [&] { (void)file.set_size(10'000); });
  expect_to_return("stat", [&] { (void)file.stat(status); });
  expect_to_return("sync", [&] { (void)file.sync(); });
  expect_to_return("view", [&] { (void)file.view(0, 1); });
  expect_to_return("stat of a name", [&] { (void)files::stat(name, options); });
  expect_to_return("close", [&] { (void)file.close(); });
  expect_to_return("append", [&] { (void)files::open(name, O_WRONLY | O_APPEND).append(bytes); });
  expect_to_return("remove", [&] { files::remove(name, options); });
}

TEST(FilesCancelled, CallsReturnFirst) {
  const ServedDirectory served;
  in_client([&] { use_cancelled((served.root() / "file").string()); });
  in_client([&] { use_cancelled(served.address() + "/file"); });
}

TEST(FilesCancelled, CallsThatWaitForAServerThatIsGoneReturnFirst) {
  const ServedDirectory served;
  in_client([&] {
    const files::Options options{.timeout = std::chrono::milliseconds(100)};
    files::File file = files::open(served.address() + "/file", O_RDWR | O_CREAT, 0600, options);
    std::vector<std::byte> bytes(20'000);
    EXPECT_TRUE(file.pwrite(bytes, 0));
    served.kill();
    expect_to_return("pread", [&] { (void)file.pread(bytes, 0, Path::host); });
    served.kill();
    expect_to_return("pwrite", [&] { (void)file.pwrite(bytes, 0); });
    served.kill();
    expect_to_return("close", [&] { (void)file.close(); });
  });
}

}  // namespace
}  // namespace wherry::file
