// SPDX-License-Identifier: Apache-2.0
// What the tests of large blocking transfers share.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

/// Memory at an odd address.
class Unaligned {
 public:
  explicit Unaligned(std::size_t bytes, std::size_t offset = 1) : memory_(bytes + 64), bytes_(bytes), offset_(offset) {}
  [[nodiscard]] std::span<std::byte> bytes() { return std::span(memory_).subspan(offset_, bytes_); }

 private:
  std::vector<std::byte> memory_;
  std::size_t bytes_;
  std::size_t offset_;
};

class StreamSplitTest : public StreamTest {
 protected:
  [[nodiscard]] Streams pair_of(std::size_t ring) const {
    return connect_pair({.ring_bytes = ring}, {.ring_bytes = ring});
  }

  /// Faults and puts take their time.
  [[nodiscard]] std::size_t total() const { return GetParam().maps && GetParam().rings_exactly ? 24 * kMiB : 4 * kMiB; }

  void send_random(Stream& stream, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (std::size_t sent = 0; sent < total();) {
      const std::size_t n = std::min(total() - sent, random_size(random));
      Unaligned memory(n, random() % 64);
      pattern_.fill(memory.bytes(), sent);
      ASSERT_EQ(send_in_some_way(stream, memory.bytes(), random), n);
      sent += n;
    }
  }
  void receive_random(Stream& stream, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (std::size_t received = 0; received < total();) {
      const std::size_t n = std::min(total() - received, random_size(random));
      Unaligned memory(n, random() % 64);
      const bool all = random() % 2 == 0;
      const Result result = all ? stream.receive_all(memory.bytes()) : stream.receive(memory.bytes());
      ASSERT_TRUE(result.ok() && result.bytes != 0) << result.error << " after " << received;
      ASSERT_TRUE(!all || result.bytes == n);
      ASSERT_TRUE(pattern_.matches(memory.bytes().first(result.bytes), received)) << "after " << received;
      received += result.bytes;
    }
  }

  /// Blocks a receiver in receive_all, asleep, then sends.
  template <class Send>
  void with_a_waiting_receiver(Streams& ends, std::span<std::byte> buffer, Timeout timeout, Send&& send) const {
    const std::uint64_t sleeps = ends.acceptor.counters().receive_sleeps;
    std::thread receiver([&] {
      const Result result = ends.acceptor.receive_all(buffer, timeout);
      EXPECT_TRUE(result.ok()) << result.error;
      EXPECT_EQ(result.bytes, buffer.size());
    });
    while (ends.acceptor.counters().receive_sleeps == sleeps) std::this_thread::yield();
    send();
    receiver.join();
    EXPECT_TRUE(pattern_.matches(buffer, 0));
  }

  void expect_split(const Streams& ends, std::size_t bytes) const {
    EXPECT_EQ(ends.connector.counters().bytes_sent_split, bytes);
    EXPECT_EQ(ends.acceptor.counters().bytes_received_split, bytes);
    EXPECT_EQ(ends.connector.counters().bytes_sent, ends.acceptor.counters().bytes_received);
  }

  /// Whether such a transfer is split here.
  [[nodiscard]] static bool splits() {
    std::uint64_t from = 1, to = 0;
    const iovec here{&to, sizeof to}, there{&from, sizeof from};
    return GetParam().fabric == "shm" && ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == sizeof to;
  }

  ScopedEnvironment threshold_{"WHERRY_SPLIT", "64K"};

 private:
  static std::size_t random_size(std::mt19937_64& random) {
    constexpr std::size_t kMost[] = {100, 8 * kKiB, 66 * kKiB, 300 * kKiB, 8 * kMiB};
    return 1 + random() % kMost[random() % std::size(kMost)];
  }
  static std::size_t send_in_some_way(Stream& stream, std::span<std::byte> bytes, std::mt19937_64& random) {
    const std::size_t cut = random() % bytes.size();
    const iovec pieces[] = {vector_of(bytes.first(cut)), {nullptr, 0}, vector_of(bytes.subspan(cut))};
    return random() % 2 == 0 ? stream.send(bytes).bytes : stream.send(pieces).bytes;
  }
};

}  // namespace wherry::conformance
