// SPDX-License-Identifier: Apache-2.0
// Windows over a network that is short of memory, or slow, or does not answer.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "window/local_table.hpp"
#include "window/space.hpp"

namespace wherry::window {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMany = std::size_t{40} << 20;

class Exposed final : public memory::LocalRegion {
 public:
  explicit Exposed(std::span<std::byte> memory) : piece_{.bytes = memory.size(), .key = {}, .view = memory.data()} {}
  [[nodiscard]] std::span<const Piece> pieces() const override { return {&piece_, 1}; }
  void keep() noexcept override {}

 private:
  const Piece piece_;
};

/// A region of the peer: records what is put.
class Reached final : public memory::RemoteRegion {
 public:
  explicit Reached(std::vector<std::size_t>& puts) : puts_(puts) {}
  bool put(std::uint64_t, std::span<const std::byte> source) override {
    puts_.push_back(source.size());
    return true;
  }
  bool get(std::span<std::byte>, std::uint64_t) override { return true; }
  bool signal(std::uint64_t, std::uint64_t) override { return true; }

 private:
  std::vector<std::size_t>& puts_;
};

/// A put fabric that the test controls.
class Network final : public fabric::Connection, private fabric::Exposure {
 public:
  [[nodiscard]] std::span<std::byte> segment() const override {
    return {reinterpret_cast<std::byte*>(page_.get()), sizeof *page_};
  }
  [[nodiscard]] std::size_t remote_bytes() const override { return sizeof *page_; }
  fabric::Exposure* exposure() override { return this; }
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override {
    return std::make_shared<Exposed>(memory);
  }
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey&, std::size_t, int&) override {
    return std::make_shared<Reached>(puts);
  }
  std::size_t put(std::uint64_t, std::span<const std::byte> source) override { return source.size(); }
  std::shared_ptr<std::byte[]> buffer(std::size_t bytes) override {
    if (short_of_memory) throw std::bad_alloc();
    auto given = Connection::buffer(bytes);
    last_buffer = given;
    return given;
  }
  bool get(std::span<std::byte>, std::uint64_t) override { return true; }
  bool signal(std::uint64_t, std::uint64_t, fabric::Bell) override { return true; }
  Result flush(fabric::Deadline deadline) override {
    flushes.push_back(deadline);
    return flush_error == 0 ? Result::moved(0) : Result::failure(flush_error);
  }
  void arm(fabric::Bell) override {}
  void disarm(fabric::Bell) override {}
  bool silence(fabric::Bell) override { return false; }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override { return fabric::Wake::timeout; }
  int descriptor(fabric::Bell) override { return -1; }
  void notify_self(fabric::Bell) override {}
  bool peer_gone() override { return false; }
  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const fabric::Greeting& peer_greeting() const override { return greeting_; }

  /// The peer registers a window of `bytes` at offset 0.
  void announce_window(std::uint64_t bytes) {
    page_->entries[0].bytes = bytes;
    page_->entries[0].protection = PROT_READ | PROT_WRITE;
    page_->sequences[0] = 1;
    page_->changes = layout::window_changes(1, 1);
  }

  bool short_of_memory = false;
  int flush_error = 0;
  std::vector<fabric::Deadline> flushes;
  std::vector<std::size_t> puts;
  std::weak_ptr<std::byte[]> last_buffer;

 protected:
  bool notify(fabric::Bell) override { return true; }

 private:
  const std::unique_ptr<layout::WindowPage> page_ = std::make_unique<layout::WindowPage>();
  Peer peer_;
  fabric::Greeting greeting_{};
};

class WindowNetwork : public ::testing::Test {
 protected:
  int add(Space& space) { return space.register_memory(memory_, kPage, PROT_READ).error; }

  alignas(kPage) std::array<std::byte, kPage> memory_{};
  Network network_;
};

TEST_F(WindowNetwork, AWindowThatCannotBeToldForWantOfMemoryIsNotRegistered) {
  Space space(network_, 0);
  network_.short_of_memory = true;
  EXPECT_EQ(add(space), ENOMEM);
  EXPECT_EQ(space.unregister(kPage, kPage), ENXIO);
  network_.short_of_memory = false;
  EXPECT_EQ(add(space), 0);
}

TEST_F(WindowNetwork, RegisteringAndTakingItBackShareOneDeadline) {
  Space space(network_, 0);
  network_.flush_error = ETIMEDOUT;
  EXPECT_EQ(add(space), ETIMEDOUT);
  ASSERT_EQ(network_.flushes.size(), 2U);
  EXPECT_EQ(network_.flushes[0], network_.flushes[1]);
}

TEST_F(WindowNetwork, AnEntryIsKeptOnlyWhileTheNetworkMayReadIt) {
  Space space(network_, 0);
  EXPECT_EQ(add(space), 0);
  EXPECT_TRUE(network_.last_buffer.expired());
  EXPECT_EQ(space.unregister(kPage, kPage), 0);
  network_.flush_error = ETIMEDOUT;
  EXPECT_EQ(add(space), ETIMEDOUT);
  EXPECT_FALSE(network_.last_buffer.expired());
  network_.flush_error = 0;
  space.close();
  EXPECT_TRUE(network_.last_buffer.expired()) << "the last flush covers it";
}

TEST_F(WindowNetwork, ClosingFlushesOnceForAll) {
  Space space(network_, 0);
  EXPECT_EQ(add(space), 0);
  network_.flushes.clear();
  space.close();
  EXPECT_EQ(network_.flushes.size(), 1U);
}

TEST_F(WindowNetwork, ALongTransferIsAcknowledgedInParts) {
  Space space(network_, 0);
  network_.announce_window(kMany);
  void* const source = ::mmap(nullptr, kMany, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(source, MAP_FAILED);
  const std::span bytes(static_cast<const std::byte*>(source), kMany);
  EXPECT_EQ(space.write_to(bytes, 0, {.complete = true}), 0);
  EXPECT_GE(network_.flushes.size(), 3U);
  ASSERT_FALSE(network_.puts.empty());
  EXPECT_LE(*std::max_element(network_.puts.begin(), network_.puts.end()), std::size_t{16} << 20);
  ::munmap(source, kMany);
}

}  // namespace
}  // namespace wherry::window
