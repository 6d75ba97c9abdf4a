// SPDX-License-Identifier: Apache-2.0
// The host is rebooted, then the daemon is killed: a loss is reported once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "file/mount/file_system.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

constexpr NodeId kFile = kRootNode + 1;
constexpr std::uint64_t kFirst = 1;

class HostRuns : public testing::Test {
 protected:
  /// Runs `call` in a process that ends like a killed one: nothing is closed. Returns the result of `call`.
  int in_next_daemon(const std::function<int(FileSystem&)>& call) {
    const std::uint64_t number = ++daemons_;
    const pid_t child = ::fork();
    if (child == 0) {
      KeptState state(memory_);
      KeptDescriptors none;
      const KeptSnapshot left = state.load();
      HostOptions options = served_.client();
      options.process = {.client = 5, .number = number};
      FileSystem system(options, 1, WriteBuffer::make(0),
                        {.state = &state, .descriptors = &none, .left = number == 1 ? nullptr : &left});
      ::_exit(call(system));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status);
  }
  static int make(FileSystem& system, const char* name) {
    Entry entry;
    OpenFile* file = nullptr;
    const int error = system.files().create(kRootNode, name, 0644, O_RDWR, entry, file);
    return error != 0 ? error : write(system, entry.node, *file);
  }
  static int write(FileSystem& system, NodeId node, OpenFile& file) {
    return system.files().write(node, file, 0, as_data("text"), OpenFiles::Write::at_once).error;
  }
  /// Detects the loss, which a later call reports.
  static int connect_only(FileSystem& system) {
    layout::FileStatus status{};
    const Hosts::File& file = system.files().find(kFirst)->file();
    return file.use()->status(file.handle(), status);
  }
  static int write_first(FileSystem& system) { return write(system, kFile, *system.files().find(kFirst)); }
  /// As if the mount had been made, and all files opened, during another boot of the host.
  void start_host_again() {
    KeptState state(memory_);
    const std::string text = state.load().text(layout::KeptWord::server);
    layout::FileHello hello{};
    ASSERT_EQ(text.size(), sizeof hello);
    std::memcpy(&hello, text.data(), sizeof hello);
    hello.boot[0] ^= 1;
    KeptState::Batch(&state).add_text(layout::KeptWord::server, {reinterpret_cast<const char*>(&hello), sizeof hello});
  }

  ServedDirectory served_;
  UniqueFd memory_ = KeptState::make_memory();
  std::uint64_t daemons_ = 0;
};

TEST_F(HostRuns, ALossThatWasToldIsNotToldByTheNextDaemon) {
  ASSERT_EQ(in_next_daemon([](FileSystem& system) { return make(system, "file"); }), 0);
  start_host_again();
  const auto connect_and_write = [](FileSystem& system) { return connect_only(system) + write_first(system); };
  EXPECT_EQ(in_next_daemon(connect_and_write), EIO);
  EXPECT_EQ(in_next_daemon(connect_and_write), 0);
  EXPECT_EQ(in_next_daemon(connect_and_write), 0);
}

TEST_F(HostRuns, ALossThatWasNotToldIsToldByTheNextDaemon) {
  ASSERT_EQ(in_next_daemon([](FileSystem& system) { return make(system, "file"); }), 0);
  start_host_again();
  EXPECT_EQ(in_next_daemon(connect_only), 0);
  EXPECT_EQ(in_next_daemon(connect_only), 0);
  EXPECT_EQ(in_next_daemon(write_first), EIO);
  EXPECT_EQ(in_next_daemon(write_first), 0);
}

TEST_F(HostRuns, ALossIsToldAgainIfTheDaemonIsKilledBeforeItsAnswer) {
  ASSERT_EQ(in_next_daemon([](FileSystem& system) { return make(system, "file"); }), 0);
  start_host_again();
  const auto write_unanswered = [](FileSystem& system) {
    served_request() = {.number = 7};
    return connect_only(system) + write_first(system);
  };
  EXPECT_EQ(in_next_daemon(write_unanswered), EIO);
  const auto write_and_answer = [&](FileSystem& system) {
    const int error = write_unanswered(system);
    system.tree().attempts().end();
    return error;
  };
  EXPECT_EQ(in_next_daemon(write_and_answer), EIO);
  EXPECT_EQ(in_next_daemon(write_and_answer), 0);
}

TEST_F(HostRuns, FilesThatWereOpenedAfterwardsHaveLostNothing) {
  ASSERT_EQ(in_next_daemon([](FileSystem& system) { return make(system, "file"); }), 0);
  start_host_again();
  EXPECT_EQ(in_next_daemon([](FileSystem& system) { return make(system, "later"); }), 0);
  const auto write_later = [](FileSystem& system) {
    OpenFile& later = *system.files().find(kFirst + 1);
    // The second write would report a loss that the first one has detected.
    return write(system, kFile + 1, later) + write(system, kFile + 1, later);
  };
  EXPECT_EQ(in_next_daemon(write_later), 0);
  EXPECT_EQ(in_next_daemon(write_first), EIO);
}

TEST_F(HostRuns, AClosedFileIsForgotten) {
  KeptState state(memory_);
  KeptState::Batch(&state).add_open({.head = {},
                                     .number = kFirst,
                                     .node = kFile,
                                     .request = 0,
                                     .device = 0,
                                     .file_system = 0,
                                     .flags = 0,
                                     .mode = 0,
                                     .backing = 0,
                                     .errors = 0});
  const HostBoot seen{.boot = {1, 2, 3}, .lost = true};
  KeptState::Batch(&state).add_boot(kFirst, seen);
  EXPECT_EQ(state.load().boots.at(kFirst), seen);
  KeptState::Batch(&state).add(layout::KeptWord::closed, kFirst);
  EXPECT_TRUE(state.load().boots.empty());
}

}  // namespace
}  // namespace wherry::file::mount
