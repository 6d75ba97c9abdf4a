// SPDX-License-Identifier: Apache-2.0
#include "base/found_once.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/child_process.hpp"

namespace wherry {
namespace {

/// A FoundOnce that is not static, and frees its value.
struct TestObject : FoundOnce<int> {
  ~TestObject() {
    delete &get([] { return 0; });
  }
};

TEST(FoundOnce, IsNotLookedForAgain) {
  TestObject number;
  int looked = 0;
  const auto look = [&] { return ++looked; };
  EXPECT_EQ(number.get(look), 1);
  EXPECT_EQ(number.get(look), 1);
}

TEST(FoundOnce, IsTheSameForAllThreadsThatLookAtTheSameTime) {
  TestObject number;
  std::latch both_look(2);
  const auto look = [&](int found) {
    return &number.get([&] {
      both_look.arrive_and_wait();
      return found;
    });
  };
  const int* others = nullptr;
  std::thread other([&] { others = look(1); });
  const int* const own = look(2);
  other.join();
  EXPECT_EQ(own, others);
}

/// The child does not depend on a thread that it does not have.
TEST(FoundOnce, IsFoundByAChildThatIsForkedWhileAnotherThreadLooks) {
  TestObject number;
  std::latch looks(1);
  std::latch forked(1);
  std::thread other([&] {
    number.get([&] {
      looks.count_down();
      forked.wait();
      return 1;
    });
  });
  looks.wait();
  Child child([&] { return number.get([] { return 2; }) == 2; });
  EXPECT_EQ(child.wait(), 0);
  forked.count_down();
  other.join();
}

}  // namespace
}  // namespace wherry
