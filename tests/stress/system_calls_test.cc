// SPDX-License-Identifier: Apache-2.0
// A blocking stream of small messages makes no system call per message while both sides run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/child_process.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/side.hpp"

namespace wherry::stress {
namespace {

constexpr std::size_t kMessage = 64;

std::uint64_t messages() { return options().operations / 20; }

class SystemCalls : public ::testing::Test {
 protected:
};

/// Sleeps and wake-ups of both sides: the only system calls that moving data makes.
std::uint64_t sleeps_and_wakes() {
  SharedValue<StreamCounters> receiver;
  Listener listener = listen("wherry+shm://*:*");
  Child child([&] {
    Stream stream = connect(listener.local().to_string(), {}, kConnectTimeout);
    std::array<std::byte, kMessage> message{};
    Result result;
    while ((result = stream.receive_all(message)).ok()) continue;
    *receiver = stream.counters();
    return result.ended();
  });
  Stream stream = listener.accept(kConnectTimeout);
  std::array<std::byte, kMessage> message{};
  for (std::uint64_t i = 0; i < messages() && stream.send(message).ok(); ++i) continue;
  const StreamCounters sender = stream.counters();
  stream.close();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(receiver->bytes_received, messages() * kMessage);
  const std::uint64_t calls = sender.send_sleeps + sender.wakes + receiver->receive_sleeps + receiver->wakes;
  std::printf("%llu messages, %llu sleeps and wakes\n", static_cast<unsigned long long>(messages()),
              static_cast<unsigned long long>(calls));
  return calls;
}

// Others may have the processors for a while: of a product that makes many calls no run makes few.
TEST_F(SystemCalls, SleepsAndWakesAreFewerThanMessages) {
  if (sanitized()) GTEST_SKIP() << "under a sanitizer a message takes longer than anybody looks for it";
  while (sleeps_and_wakes() >= messages() / 10 && !HasFailure()) continue;
}

/// The sum at the end of what `strace -c` wrote.
std::uint64_t total_calls(const std::filesystem::path& summary) {
  std::ifstream lines(summary);
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(" total")) continue;
    std::istringstream words(line);
    std::string percent;
    std::string seconds;
    std::string per_call;
    std::uint64_t calls = 0;
    words >> percent >> seconds >> per_call >> calls;
    return calls;
  }
  return 0;
}

/// All system calls of a run of the test above.
std::uint64_t traced_calls() {
  const auto summary = std::filesystem::temp_directory_path() / ("wherry-strace-" + std::to_string(::getpid()));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "strace -f -c -o '" + summary.string() + "' '" + program +
      "' --gtest_filter='SystemCalls.Sleeps*' --operations=" + std::to_string(options().operations) +
      " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  const std::uint64_t calls = total_calls(summary);
  std::filesystem::remove(summary);
  EXPECT_EQ(status, 0);
  std::printf("%llu messages, %llu system calls of both processes\n", static_cast<unsigned long long>(messages()),
              static_cast<unsigned long long>(calls));
  EXPECT_GT(calls, 0U);
  return calls;
}

TEST_F(SystemCalls, TheKernelCountsNoMore) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  if (std::system("strace -f -c -o /dev/null true 2>/dev/null") != 0)
    GTEST_SKIP() << "needs strace and the right to trace";
  while (traced_calls() >= messages() / 10 + 2000 && !HasFailure()) continue;
}

}  // namespace
}  // namespace wherry::stress
