// SPDX-License-Identifier: Apache-2.0
// What the fabric suites share: a connected pair, and the protocol for sleeping on a word.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_environment.hpp"
#include "fabric/fabric.hpp"
#include "tests/conformance/fabrics.hpp"

namespace wherry::conformance {

using namespace std::chrono_literals;
using fabric::Bell;
using fabric::Connection;
using fabric::Deadline;
using fabric::Offer;
using fabric::Wake;

inline constexpr std::size_t kPage = 4096;
/// Longer than the test's watchdog allows: it never passes, and a lost wake-up is a test that does not end.
inline constexpr std::chrono::seconds kTimeout{3600};

inline Deadline in(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

/// Waits until `descriptor` is readable.
bool readable(int descriptor, std::chrono::milliseconds timeout = kTimeout);

fabric::Greeting greeting_of(std::uint8_t number);

/// Both throw std::runtime_error after the timeout, so that a helper may use them anywhere.
std::unique_ptr<Connection> accept(fabric::Listener& listener, const Offer& offer);
std::unique_ptr<Connection> finish(fabric::Connecting& connecting);

/// The errno value of the Error that `call` throws, 0 if it throws none. Its advice must not be empty.
template <class Call>
int error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_FALSE(error.advice().empty()) << error.what();
    return error.code().value();
  }
  return 0;
}

struct Ends {
  std::unique_ptr<Connection> connector;
  std::unique_ptr<Connection> acceptor;
};

class FabricTest : public ::testing::TestWithParam<FabricUnderTest> {
 protected:
  FabricTest();
  void SetUp() override;

  [[nodiscard]] fabric::Fabric& tested() const { return fabric_; }
  [[nodiscard]] std::unique_ptr<fabric::Listener> listen() const { return tested().listen(Address{}); }
  [[nodiscard]] Ends connect_pair(const Offer& connector = {.segment_bytes = kPage},
                                  const Offer& acceptor = {.segment_bytes = kPage}) const;
  /// What the other process does: on the other host, if the fabric is between hosts.
  [[nodiscard]] static std::function<void()> there(const std::function<void()>& play);

 private:
  ScopedEnvironment faults_;
  const std::string not_there_;  ///< why this process cannot move to the first of two hosts
  fabric::Fabric& fabric_;
};

/// Memory to put from and to get into, registered where the fabric asks for that. Must not outlive the flush.
class Bytes {
 public:
  Bytes(Connection& connection, std::size_t bytes, std::byte value = {})
      : memory_(connection.buffer(bytes)), bytes_(bytes) {
    std::fill_n(memory_.get(), bytes, value);
  }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::span<std::byte> span() const { return {memory_.get(), bytes_}; }
  operator std::span<std::byte>() const { return span(); }        // NOLINT(google-explicit-constructor)
  operator std::span<const std::byte>() const { return span(); }  // NOLINT(google-explicit-constructor)

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t bytes_;
};

/// A word in this side's own segment, that the peer writes.
std::atomic<std::uint64_t>& word(const Connection& connection, std::uint64_t offset);

/// Sleeps, as the contract says, until the own word at `offset` is at least `value`. Anything but `rung` is a failure.
Wake await(Connection& connection, std::uint64_t offset, std::uint64_t value, Bell bell);

/// Sleeps until the peer is gone, through any wake-ups. Anything but `gone` is a failure.
Wake wait_for_end(Connection& connection, Bell bell = Bell::data);

/// Puts all of `source`, in as many puts as it takes, and sleeps on the bell for space where the queue is full. False:
/// the connection is dead.
bool put_all(Connection& connection, std::uint64_t offset, std::span<const std::byte> source);

/// Stores a word at the peer as code above a fabric does: straight where there is a map, by signal where not.
void publish(Connection& connection, std::uint64_t offset, std::uint64_t value, Bell bell);

/// Pseudo-random bytes, the same for the same seed.
void fill(std::span<std::byte> bytes, std::uint64_t seed);
bool filled(std::span<const std::byte> bytes, std::uint64_t seed);

/// Nothing, a few spins, or a short sleep: so that two threads meet at all moments.
void dawdle(std::uint64_t random);

/// Page-aligned memory that a caller may bring into a connection.
class CallersPages {
 public:
  explicit CallersPages(std::size_t bytes);
  CallersPages(const CallersPages&) = delete;
  CallersPages& operator=(const CallersPages&) = delete;
  ~CallersPages();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] Offer offer() const { return {.segment_bytes = bytes_.size(), .memory = bytes_.data()}; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace wherry::conformance
