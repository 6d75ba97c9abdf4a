// SPDX-License-Identifier: Apache-2.0
// A supervisor whose daemons are this program: each run of the test named Daemon is one.
#include "file/mount/supervisor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "file/mount/kept_descriptors.hpp"
#include "file/mount/layout/kept_descriptors.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file::mount {
namespace {

constexpr const char* kTask = "WHERRY_TEST_DAEMON";
constexpr const char* kStarts = "WHERRY_TEST_STARTS";
/// More messages than a socket buffers.
constexpr std::uint64_t kMany = 500;

UniqueFd any_descriptor() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

/// The last argument of the command, which the supervisor has added.
int socket_of_this_process() {
  std::ifstream file("/proc/self/cmdline");
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  const std::size_t found = words.rfind(Supervisor::kSocketWord);
  return found == std::string::npos ? -1 : std::atoi(words.c_str() + found + std::strlen(Supervisor::kSocketWord));
}

/// The number of this daemon, from 1.
std::uintmax_t note_start() {
  const std::filesystem::path starts = std::getenv(kStarts);
  std::ofstream(starts, std::ios::app) << 'x';
  return std::filesystem::file_size(starts);
}

[[noreturn]] void be_killed() {
  ::kill(::getpid(), SIGKILL);
  ::_exit(3);
}

void wait_for_signal() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  ::sigwaitinfo(&wanted, nullptr);
}

/// The first daemon leaves many descriptors, the second one ends before it has taken them, and the third one gets all.
[[noreturn]] void leave_much(UniqueFd socket, std::uintmax_t which) {
  if (which == 2) be_killed();
  KeptDescriptors kept(std::move(socket));
  if (which == 1) {
    for (std::uint64_t id = 0; id < kMany; ++id) kept.keep({KeptKind::file, id}, any_descriptor().get());
    kept.keep({KeptKind::device}, any_descriptor().get());
    be_killed();
  }
  for (std::uint64_t id = 0; id < kMany; ++id) {
    if (!kept.has({KeptKind::file, id})) ::_exit(4);
  }
  ::_exit(kept.has({KeptKind::device}) && which == 3 ? 0 : 5);
}

/// The first daemon is killed before it has acted on the signal.
[[noreturn]] void end_by_signal(UniqueFd socket, std::uintmax_t which) {
  KeptDescriptors kept(std::move(socket));
  kept.keep({KeptKind::device}, any_descriptor().get());
  if (which == 1) kept.report_ready();
  wait_for_signal();
  if (which == 1) be_killed();
  ::_exit(which == 2 ? 0 : 5);
}

TEST(SupervisorTest, Daemon) {
  const char* const task = std::getenv(kTask);
  UniqueFd socket(task == nullptr ? -1 : socket_of_this_process());
  if (!socket.valid()) return;  // this process is not a daemon
  const std::uintmax_t which = note_start();
  if (std::string(task) == "leave much") leave_much(std::move(socket), which);
  end_by_signal(std::move(socket), which);
}

/// SIGTERM is blocked, also in the daemons.
int run_supervisor(const char* task, const std::function<void()>& ready) {
  const test::TemporaryDirectory folder;
  ::setenv(kTask, task, 1);
  ::setenv(kStarts, (folder.path() / "starts").c_str(), 1);
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  Supervisor supervisor({"daemon", "--gtest_filter=SupervisorTest.Daemon"},
                        UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC)), ready);
  const int status = supervisor.run();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::unsetenv(kTask);
  return status;
}

TEST(SupervisorTest, WhatIsSentToADaemonThatIsGoneWaitsForNobody) {
  EXPECT_EQ(run_supervisor("leave much", [] {}), 0);
}

TEST(SupervisorTest, ASignalThatAKilledDaemonHasNotHeededGoesToTheNextOne) {
  EXPECT_EQ(run_supervisor("end by signal", [] { ::kill(::getpid(), SIGTERM); }), 0);
}

}  // namespace
}  // namespace wherry::file::mount
