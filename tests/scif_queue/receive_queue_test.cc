// SPDX-License-Identifier: Apache-2.0
// The receiving half of an endpoint against a sender that is stopped at the worst moment. The sender is played here,
// word by word, because no program can be stopped exactly there.
#include "adapters/scif/receive_queue.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>

#include "adapters/scif/socket.hpp"

namespace wherry::scif {
namespace {

constexpr std::uint64_t kMost = layout::kScifQueueMost;

class ScifReceiveQueue : public ::testing::Test {
 protected:
  ScifReceiveQueue() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets_.data()), 0);
    for (const int socket : sockets_) tune_socket(socket);
    auto& fabric = fabric::find("inproc");
    const auto listener = fabric.listen({});
    const auto connecting = fabric.connect(listener->local(), {.segment_bytes = layout::kScifPageBytes});
    accepted_ = listener->try_accept({.segment_bytes = layout::kScifPageBytes});
    connection_ = connecting->try_finish();
    waiter_.emplace(inode_of(sockets_[0]));
    receive_queue_.emplace(*waiter_, lock_, *connection_, own_, peers_, queue_.data());
  }
  ~ScifReceiveQueue() override {
    for (const int socket : sockets_) ::close(socket);
  }

  // The sender.
  void write(std::uint64_t bytes) { own_.arriving.tail.store(tail_ += bytes, std::memory_order_release); }
  void send_packet(std::uint64_t answered) {
    own_.arriving.answered.store(answered, std::memory_order_relaxed);
    own_.arriving.packets.store(++packets_, std::memory_order_release);
    EXPECT_EQ(::send(sockets_[1], "", 1, MSG_DONTWAIT), 1);
  }
  void mark_full(std::uint64_t packet) { own_.arriving.full.store(packet, std::memory_order_release); }

  // The receiver.
  std::size_t receive(std::size_t bytes) {
    std::array<std::byte, kMost> buffer;
    return receive_queue_->receive(sockets_[0], std::span(buffer).first(bytes), false).bytes;
  }
  [[nodiscard]] bool readable() const {
    pollfd polled{sockets_[0], POLLIN, 0};
    return ::poll(&polled, 1, 0) == 1;
  }

 private:
  std::array<int, 2> sockets_{};
  std::unique_ptr<fabric::Connection> accepted_, connection_;
  layout::ScifPage own_{}, peers_{};
  alignas(64) std::array<std::byte, layout::kScifQueueBytes> queue_{};
  SpinLock lock_;
  std::optional<EndpointWaiter> waiter_;
  std::optional<ReceiveQueue> receive_queue_;
  std::uint64_t tail_ = 0, packets_ = 0;
};

TEST_F(ScifReceiveQueue, StaysReadableWhereTheSenderStopsBeforeItSendsThatTheQueueIsFull) {
  write(kMost);
  send_packet(1);
  mark_full(2);
  EXPECT_EQ(receive(100), 100U);
  EXPECT_TRUE(readable());
}

}  // namespace
}  // namespace wherry::scif
