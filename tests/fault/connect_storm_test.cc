// SPDX-License-Identifier: Apache-2.0
// Processes of another user connect to a listener's name as fast as they can, while its owner connects.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <iostream>

#include "fabric/shm/socket_names.hpp"
#include "tests/common/other_user.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

class ConnectStorm : public FaultTest {
 protected:
  void SetUp() override {
    if (!may_be_another_user()) GTEST_SKIP() << "only root can be another user";
  }

  /// A process of another user whose connectors wait for a place in the queue, or try at once again.
  [[nodiscard]] Child stormer(const Listener& listener, bool waits) {
    return as_other_user(
        [this, waits, name = fabric::shm::socket_name(*listener.local().node, *listener.local().port)] {
          while (true) {
            const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | (waits ? 0 : SOCK_NONBLOCK), 0));
            const int result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length);
            if (result == 0 || errno != EINTR) ++*attempts_;
          }
          return true;
        });
  }

  const SharedValue<std::atomic<std::uint64_t>> attempts_;
};

TEST_F(ConnectStorm, OfAnotherUserLetsEachConnectorOfTheOwnerIn) {
  constexpr int kConnects = 30;
  for (const bool waits : {false, true}) {
    Listener listener = listen(address());
    const Child first = stormer(listener, waits);
    const Child second = stormer(listener, waits);
    // The storm has filled the queue, or spent what it may have.
    for (const std::uint64_t before = *attempts_; *attempts_ < before + 10'000;) (void)listener.try_accept();
    const SharedValue<std::atomic<std::int64_t>> nanoseconds;
    const Child owner([&, where = listener.local().to_string()] {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kConnects; ++i) {
        if (!connect(where, {}, kTimeout).is_open()) return false;
      }
      *nanoseconds = (std::chrono::steady_clock::now() - start).count();
      return true;
    });
    for (int i = 0; i < kConnects; ++i) EXPECT_TRUE(listener.accept(kTimeout).is_open());
    while (*nanoseconds == 0) (void)listener.try_accept();
    std::cout << "[ measured ] mean of a connect beside a storm that " << (waits ? "waits" : "tries again") << ": "
              << static_cast<double>(*nanoseconds) / kConnects * 1e-6 << " ms\n";
  }
}

}  // namespace
}  // namespace wherry::fault
