// SPDX-License-Identifier: Apache-2.0
#include "atomics.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>

#include <array>
#include <complex>
#include <cstring>
#include <limits>

namespace wherry::mpi {
namespace {

template <class T>
struct Outcome {
  T now;
  T before;
};

/// At an address that fits no datatype.
template <class T>
Outcome<T> run(fi_datatype datatype, fi_op action, T target, T operand, T comparand = T{}) {
  std::array<std::byte, sizeof(T) + 1> memory{};
  std::memcpy(memory.data() + 1, &target, sizeof(T));
  Outcome<T> outcome{};
  run_atomic(datatype, action,
             {memory.data() + 1, reinterpret_cast<std::byte*>(&operand),
              compares(action) ? reinterpret_cast<std::byte*>(&comparand) : nullptr,
              reinterpret_cast<std::byte*>(&outcome.before)},
             1);
  std::memcpy(&outcome.now, memory.data() + 1, sizeof(T));
  return outcome;
}

TEST(Atomics, IntegersHaveAllActions) {
  const auto now = [](fi_op action, std::int32_t target, std::int32_t operand, std::int32_t comparand = 0) {
    const auto outcome = run<std::int32_t>(FI_INT32, action, target, operand, comparand);
    EXPECT_EQ(outcome.before, target);
    return outcome.now;
  };
  EXPECT_EQ(now(FI_MIN, 3, -5), -5);
  EXPECT_EQ(now(FI_MAX, 3, -5), 3);
  EXPECT_EQ(now(FI_SUM, 3, -5), -2);
  EXPECT_EQ(now(FI_PROD, 3, -5), -15);
  EXPECT_EQ(now(FI_LOR, 0, 4), 1);
  EXPECT_EQ(now(FI_LAND, 3, 0), 0);
  EXPECT_EQ(now(FI_LXOR, 3, 4), 0);
  EXPECT_EQ(now(FI_BOR, 3, 5), 7);
  EXPECT_EQ(now(FI_BAND, 3, 5), 1);
  EXPECT_EQ(now(FI_BXOR, 3, 5), 6);
  EXPECT_EQ(now(FI_ATOMIC_READ, 3, 5), 3);
  EXPECT_EQ(now(FI_ATOMIC_WRITE, 3, 5), 5);
  EXPECT_EQ(now(FI_MSWAP, 0xff, 0x1234, 0xff00), 0x12ff);
}

TEST(Atomics, ASwapComparesAsItsNameSays) {
  const auto swaps = [](fi_op action, std::int64_t comparand) {
    return run<std::int64_t>(FI_INT64, action, 10, 99, comparand).now == 99;
  };
  for (const std::int64_t comparand : {9, 10, 11}) {
    EXPECT_EQ(swaps(FI_CSWAP, comparand), comparand == 10);
    EXPECT_EQ(swaps(FI_CSWAP_NE, comparand), comparand != 10);
    EXPECT_EQ(swaps(FI_CSWAP_LE, comparand), comparand <= 10);
    EXPECT_EQ(swaps(FI_CSWAP_LT, comparand), comparand < 10);
    EXPECT_EQ(swaps(FI_CSWAP_GE, comparand), comparand >= 10);
    EXPECT_EQ(swaps(FI_CSWAP_GT, comparand), comparand > 10);
  }
}

TEST(Atomics, SumsAndProductsWrap) {
  EXPECT_EQ(run<std::int8_t>(FI_INT8, FI_SUM, 127, 1).now, -128);
  EXPECT_EQ(run<std::uint16_t>(FI_UINT16, FI_PROD, 65535, 65535).now, 1);
  EXPECT_EQ(run<std::int64_t>(FI_INT64, FI_SUM, std::numeric_limits<std::int64_t>::max(), 1).now,
            std::numeric_limits<std::int64_t>::min());
}

TEST(Atomics, SignsAreTheDatatypes) {
  EXPECT_EQ(run<std::uint8_t>(FI_UINT8, FI_MAX, 1, 255).now, 255);
  EXPECT_EQ(run<std::int8_t>(FI_INT8, FI_MAX, 1, -1).now, 1);
}

TEST(Atomics, FloatingPointAndComplexNumbersAreCalculatedWith) {
  EXPECT_EQ(run<float>(FI_FLOAT, FI_SUM, 1.5F, 2.0F).now, 3.5F);
  EXPECT_EQ(run<double>(FI_DOUBLE, FI_MIN, 1.5, -2.0).now, -2.0);
  EXPECT_EQ(run<long double>(FI_LONG_DOUBLE, FI_PROD, 1.5L, -2.0L).now, -3.0L);
  using Complex = std::complex<double>;
  EXPECT_EQ(run<Complex>(FI_DOUBLE_COMPLEX, FI_PROD, {0, 1}, {0, 1}).now, Complex(-1, 0));
  EXPECT_EQ(run<Complex>(FI_DOUBLE_COMPLEX, FI_CSWAP, {1, 1}, {2, 2}, {1, 1}).now, Complex(2, 2));
}

TEST(Atomics, WhatMakesNoSenseIsNoAtomic) {
  EXPECT_FALSE(is_atomic(FI_DOUBLE, FI_BOR, AtomicKind::base));
  EXPECT_FALSE(is_atomic(FI_FLOAT_COMPLEX, FI_MAX, AtomicKind::fetch));
  EXPECT_FALSE(is_atomic(FI_FLOAT_COMPLEX, FI_CSWAP_GT, AtomicKind::compare));
  EXPECT_FALSE(is_atomic(FI_INT32, FI_ATOMIC_READ, AtomicKind::base));
  EXPECT_FALSE(is_atomic(FI_INT32, FI_CSWAP, AtomicKind::fetch));
  EXPECT_FALSE(is_atomic(FI_INT32, FI_SUM, AtomicKind::compare));
  EXPECT_FALSE(is_atomic(99, FI_SUM, AtomicKind::base));
  EXPECT_FALSE(is_atomic(FI_INT32, 99, AtomicKind::base));
  EXPECT_TRUE(is_atomic(FI_INT128, FI_MSWAP, AtomicKind::compare));
}

}  // namespace
}  // namespace wherry::mpi
