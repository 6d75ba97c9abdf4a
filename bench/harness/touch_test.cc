// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/touch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::bench {
namespace {

TEST(Touch, SumOfIsWhatSumAllFindsAfterWriteAllAtEverySizeAndAlignment) {
  std::vector<std::byte> memory(400);
  for (std::size_t at = 0; at < 9; ++at) {
    for (std::size_t size = 0; size < 300; ++size) {
      const std::span<std::byte> message = std::span(memory).subspan(at, size);
      write_all(message, pattern(3, size));
      EXPECT_EQ(sum_all(message), sum_of(size, pattern(3, size))) << "size " << size << " at " << at;
    }
  }
}

TEST(Touch, EveryByteCountsInTheSum) {
  std::vector<std::byte> message(133);
  write_all(message, pattern(1, 7));
  const std::uint64_t whole = sum_all(message);
  for (std::byte& byte : message) {
    byte ^= std::byte{0x10};
    EXPECT_NE(sum_all(message), whole);
    byte ^= std::byte{0x10};
  }
}

TEST(Touch, WriteAllStaysWithinTheMessage) {
  std::vector<std::byte> memory(64, std::byte{0x55});
  write_all(std::span(memory).subspan(8, 45), pattern(1, 1));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(memory[i], std::byte{0x55});
  for (std::size_t i = 53; i < 64; ++i) EXPECT_EQ(memory[i], std::byte{0x55});
}

TEST(Touch, MessagesOfOneSenderAndTheFirstOnesOfTwoSendersDiffer) {
  EXPECT_NE(pattern(1, 0), pattern(1, 1));
  EXPECT_NE(pattern(1, 0), pattern(2, 0));
}

}  // namespace
}  // namespace wherry::bench
