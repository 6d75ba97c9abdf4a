// SPDX-License-Identifier: Apache-2.0
#include "base/iterate_with_this_last.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry {
namespace {

using Addresses = std::vector<ElfW(Addr)>;

int add(dl_phdr_info* info, std::size_t, void* list) {
  static_cast<Addresses*>(list)->push_back(info->dlpi_addr);
  return 0;
}

TEST(ShownLast, TheOneThatAsksComesLastAndTheOthersInTheirOrder) {
  Addresses usual;
  Addresses shown;
  dl_iterate_phdr(add, &usual);
  EXPECT_EQ(iterate_with_this_last(&dl_iterate_phdr, add, &shown), 0);
  ASSERT_GT(usual.size(), 2U);
  // Without it the program, which this file is linked into here, is first.
  usual.push_back(usual.front());
  usual.erase(usual.begin());
  EXPECT_EQ(shown, usual);
}

/// Unwinders keep results in a cache that the loader's lock protects.
TEST(ShownLast, EachIsShownWithinACallThatHoldsTheLoadersLock) {
  static int calls_under_way = 0;
  const auto next = [](int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
    ++calls_under_way;
    const int result = dl_iterate_phdr(callback, data);
    --calls_under_way;
    return result;
  };
  const auto look = [](dl_phdr_info*, std::size_t, void* outside) {
    if (calls_under_way == 0) ++*static_cast<int*>(outside);
    return 0;
  };
  int outside = 0;
  EXPECT_EQ(iterate_with_this_last(next, look, &outside), 0);
  EXPECT_EQ(outside, 0);
}

TEST(ShownLast, WhatTheLastCallReturnsIsReturned) {
  const auto end = [](dl_phdr_info* info, std::size_t, void*) {
    return info->dlpi_addr == reinterpret_cast<ElfW(Addr)>(&__ehdr_start) ? 7 : 0;
  };
  EXPECT_EQ(iterate_with_this_last(&dl_iterate_phdr, end, nullptr), 7);
}

TEST(ShownLast, ACallThatEndsTheListEndsIt) {
  int calls = 0;
  const auto end = [](dl_phdr_info*, std::size_t, void* count) { return ++*static_cast<int*>(count) == 2 ? 7 : 0; };
  EXPECT_EQ(iterate_with_this_last(&dl_iterate_phdr, end, &calls), 7);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace wherry
