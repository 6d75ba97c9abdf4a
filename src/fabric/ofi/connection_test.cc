// SPDX-License-Identifier: Apache-2.0
// Two ends in one process, with the real library over the loopback interface.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "arch/barrier.hpp"
#include "base/child_process.hpp"
#include "base/key_file.hpp"
#include "base/scoped_environment.hpp"
#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"
#include "fabric/retrying_connect.hpp"
#include "fabric/wait_for_events.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/seccomp.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr std::size_t kPage = 4096;

class OfiConnectionTest : public ::testing::Test {
 protected:
  OfiConnectionTest()
      : file_(std::filesystem::temp_directory_path() / ("wherry-ofi-test-" + std::to_string(::getpid()))),
        key_("WHERRY_KEY", (make_key_file(file_), file_.c_str())) {}
  ~OfiConnectionTest() override { std::filesystem::remove(file_); }

  void SetUp() override {
    if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0) GTEST_SKIP() << "libfabric has no sanitizer";
  }

  void connect(const Offer& connector = {.segment_bytes = kPage}, const Offer& acceptor = {.segment_bytes = kPage}) {
    Fabric& fabric = find("ofi");
    const auto listener = fabric.listen(Address{.fabric = "ofi", .node = {}, .port = {}});
    const auto connecting = fabric.connect(listener->local(), connector);
    while (acceptor_ == nullptr) {
      ASSERT_TRUE(wait_until_readable(listener->descriptor(), {}));
      acceptor_ = listener->try_accept(acceptor);
    }
    connector_ = finish(*connecting, listener->local(), {});
  }

  static std::atomic<std::uint64_t>& word(Connection& end, std::uint64_t offset) {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(end.segment().data() + offset);
  }
  static void await(Connection& end, std::uint64_t offset, std::uint64_t value) {
    while (word(end, offset).load(std::memory_order_acquire) != value) {
      end.arm(Bell::data);
      if (word(end, offset).load(std::memory_order_acquire) == value) break;
      ASSERT_EQ(end.wait(Bell::data, {}), Wake::rung);
    }
    end.disarm(Bell::data);
  }

  /// The address at which this process listens for data endpoints: that of a connection of its own to itself.
  static std::optional<sockaddr_in> data_address() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int socket = std::atoi(entry.path().filename().c_str());
      int listens = 0;
      socklen_t length = sizeof listens;
      sockaddr_in address{};
      socklen_t bytes = sizeof address;
      if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
      if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) continue;
      if (address.sin_family == AF_INET && address.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) return address;
    }
    return std::nullopt;
  }

  const std::string file_;
  const ScopedEnvironment key_;
  std::unique_ptr<Connection> connector_, acceptor_;
};

TEST_F(OfiConnectionTest, BytesAndTheirWordArrive) {
  connect();
  std::vector<std::byte> source(1000, std::byte{7});
  ASSERT_TRUE(connector_->put_and_signal(64, source, 0, 5, Bell::data));
  await(*acceptor_, 0, 5);
  EXPECT_EQ(std::memcmp(acceptor_->segment().data() + 64, source.data(), source.size()), 0);
  ASSERT_TRUE(acceptor_->signal(8, std::uint64_t{1} << 63, Bell::data));
  await(*connector_, 8, std::uint64_t{1} << 63);
}

TEST_F(OfiConnectionTest, AFlushIsAnsweredAndAGetBringsWhatWasPut) {
  connect();
  std::vector<std::byte> source(kPage, std::byte{9}), back(kPage);
  EXPECT_EQ(connector_->put(0, source), source.size());
  EXPECT_TRUE(connector_->flush({}).ok());
  EXPECT_EQ(std::memcmp(acceptor_->segment().data(), source.data(), source.size()), 0);
  ASSERT_TRUE(connector_->get(back, 0));
  EXPECT_TRUE(connector_->flush({}).ok());
  EXPECT_EQ(back, source);
}

/// The copies of a forked child are dead. Destroying them leaves the parent's alone, and the child may connect anew.
TEST_F(OfiConnectionTest, AForkedChildsCopyIsDead) {
  connect();
  const auto child = [this] {
    bool dead = connector_->peer_gone() && connector_->put(0, connector_->segment()) == 0 &&
                !connector_->signal(0, 1, Bell::data) && !connector_->get(connector_->segment(), 0) &&
                connector_->flush({}).error == ECONNRESET;
    connector_->arm(Bell::data);
    dead = dead && connector_->wait(Bell::data, {}) == Wake::gone;
    connector_->disarm(Bell::data);
    connector_.reset();
    acceptor_.reset();
    connect();
    return dead && connector_->signal(0, 1, Bell::data) && connector_->flush({}).ok();
  };
  EXPECT_EQ(Child(child).wait(), 0);
  ASSERT_TRUE(connector_->signal(0, 1, Bell::data));
  await(*acceptor_, 0, 1);
  EXPECT_TRUE(acceptor_->flush({}).ok());
}

/// Forks at any moment of the service's work.
TEST_F(OfiConnectionTest, AForkBesideTrafficStopsNeitherProcess) {
  connect();
  std::atomic<bool> runs{true};
  std::jthread traffic([&] {
    for (std::uint64_t i = 1; runs; ++i) {
      if (!connector_->signal(0, i, Bell::data) || !connector_->flush({}).ok()) return;
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto child = [this] {
      const bool dead = connector_->peer_gone() && acceptor_->peer_gone();
      connector_.reset();
      acceptor_.reset();
      return dead;
    };
    EXPECT_EQ(Child(child).wait(), 0);
  }
  runs = false;
  traffic.join();
  EXPECT_TRUE(connector_->flush({}).ok());
}

/// The signals that a thread blocks, as bits.
std::uint64_t blocked_by(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

TEST_F(OfiConnectionTest, ItsThreadsTakeNoSignals) {
  connect();
  std::uint64_t blockable = 0;
  for (const int signal :
       {SIGHUP, SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2, SIGIO, SIGPROF, SIGRTMIN, SIGRTMAX}) {
    blockable |= std::uint64_t{1} << (signal - 1);
  }
  int others = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    ++others;
    EXPECT_EQ(blocked_by(task) & blockable, blockable) << task.path();
  }
  EXPECT_GT(others, 0);
}

/// The service ends a connection to its data port that never becomes an endpoint, and leaves those that have.
TEST_F(OfiConnectionTest, AStrangerAtTheDataPortIsEndedAndPeersAreNot) {
  connect();
  const auto address = data_address();
  ASSERT_TRUE(address);
  const UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  constexpr std::array<unsigned char, 32> kHalfRequest{3, 0, 0, 32};
  ASSERT_EQ(::send(stranger.get(), kHalfRequest.data(), kHalfRequest.size(), 0), std::ssize(kHalfRequest));
  std::array<char, 1> byte{};
  EXPECT_LE(::recv(stranger.get(), byte.data(), byte.size(), 0), 0);
  ASSERT_TRUE(connector_->signal(0, 5, Bell::data));
  EXPECT_TRUE(connector_->flush({}).ok());
  await(*acceptor_, 0, 5);
}

/// Waiting for them would stop the service, and with it every connection.
TEST_F(OfiConnectionTest, WithoutRandomNumbersAcceptingIsAnError) {
  const auto child = [] {
    Fabric& fabric = find("ofi");
    const auto listener = fabric.listen(Address{.fabric = "ofi", .node = {}, .port = {}});
    const auto connecting = fabric.connect(listener->local(), {.segment_bytes = kPage});
    if (!wait_until_readable(listener->descriptor(), {})) return false;
    if (!refuse({SYS_getrandom})) return true;  // a kernel without filters
    try {
      (void)listener->try_accept({.segment_bytes = kPage});
    } catch (const Error& error) {
      return error.code().value() == EPERM && error.advice().ends_with("its seccomp profile must allow getrandom");
    }
    return false;
  };
  EXPECT_EQ(Child(child).wait(), 0);
}

TEST_F(OfiConnectionTest, AnEndIsNews) {
  connect();
  acceptor_->arm(Bell::data);
  connector_.reset();
  while (acceptor_->wait(Bell::data, {}) != Wake::gone) {
  }
  EXPECT_TRUE(acceptor_->peer_gone());
  EXPECT_FALSE(acceptor_->signal(0, 1, Bell::data));
  EXPECT_EQ(acceptor_->flush({}).error, ECONNRESET);
}

}  // namespace
}  // namespace wherry::fabric::ofi
