// SPDX-License-Identifier: Apache-2.0
// What the stream suites share: a connected pair on the fabric under test.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/open_descriptors.hpp"
#include "base/scoped_environment.hpp"
#include "tests/common/pattern.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {

struct Streams {
  Stream connector;
  Stream acceptor;
};

class StreamTest : public ::testing::TestWithParam<FabricUnderTest> {
 protected:
  StreamTest();

  /// "wherry+FABRIC://" and what follows: `where` is NODE:PORT.
  [[nodiscard]] std::string address(std::string_view where = "*:*") const;
  [[nodiscard]] Streams connect_pair(StreamOptions connector = {}, StreamOptions acceptor = {}) const;
  /// Both rings 4 KiB: what wraps and fills does so often.
  [[nodiscard]] Streams small_pair() const { return connect_pair({.ring_bytes = 4096}, {.ring_bytes = 4096}); }

  const Pattern pattern_{7};

 private:
  ScopedEnvironment faults_;
};

/// Sends by try_send until it would block, following `pattern` from `position` on. Returns how many bytes were taken.
std::size_t send_until_full(Stream& stream, const Pattern& pattern, std::uint64_t position = 0);

/// Receives exactly `count` bytes and expects them to follow `pattern` from `position` on.
void expect_bytes(Stream& stream, const Pattern& pattern, std::size_t count, std::uint64_t position = 0);

/// Receives by blocking calls until the end and expects `count` bytes of `pattern`.
void expect_all_then_end(Stream& stream, const Pattern& pattern, std::size_t count);

/// A descriptor may be readable with nothing behind it once (a fabric that wakes spuriously: more often); `quieten` is
/// the call that silences it. False: it stays readable however often that is called, a busy loop for a program that
/// polls.
template <class Quieten>
bool falls_silent(int descriptor, Quieten&& quieten) {
  for (int i = 0; i < 30; ++i) {
    quieten();
    if (!becomes_readable(descriptor, 2ms)) return true;
  }
  return false;
}

inline std::span<std::byte> part(std::vector<std::byte>& bytes, std::size_t from, std::size_t count) {
  return std::span(bytes).subspan(from, count);
}

inline iovec vector_of(std::span<std::byte> bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace wherry::conformance
