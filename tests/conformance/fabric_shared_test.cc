// SPDX-License-Identifier: Apache-2.0
// Memory that one side shows and any number of peers read.
#include <sys/mman.h>

#include "memory/shared_memory.hpp"
#include "tests/conformance/child_process.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

using memory::SharedMemory;

constexpr std::size_t kShown = 4 * kPage;

class FabricShared : public FabricTest {};

TEST_P(FabricShared, OneSideMayShowMemoryAndTheOtherReadsItInPlace) {
  const auto shared = tested().share(kShown);
  const Ends ends = connect_pair({.segment_bytes = kPage, .shared = shared});
  ASSERT_EQ(ends.acceptor->shown().size(), kShown);
  EXPECT_TRUE(ends.connector->shown().empty());
  fill(shared->bytes(), 1);
  EXPECT_TRUE(filled(ends.acceptor->shown(), 1));
}

TEST_P(FabricShared, BothSidesMayShow) {
  const auto one = tested().share(kShown), other = tested().share(2 * kShown);
  const Ends ends = connect_pair({.segment_bytes = kPage, .shared = one}, {.segment_bytes = kPage, .shared = other});
  fill(one->bytes(), 1);
  fill(other->bytes(), 2);
  EXPECT_TRUE(filled(ends.acceptor->shown(), 1));
  EXPECT_TRUE(filled(ends.connector->shown(), 2));
}

TEST_P(FabricShared, TheSameMemoryIsSeenOnEveryConnection) {
  const auto shared = tested().share(kShown);
  const Offer offer{.segment_bytes = kPage, .shared = shared};
  const Ends first = connect_pair(offer);
  const Ends second = connect_pair({.segment_bytes = kPage}, offer);
  fill(shared->bytes(), 3);
  EXPECT_TRUE(filled(first.acceptor->shown(), 3));
  EXPECT_TRUE(filled(second.connector->shown(), 3));
}

TEST_P(FabricShared, WhatWasShownStaysReadableWhenItsOwnerIsGone) {
  auto shared = tested().share(kShown);
  fill(shared->bytes(), 4);
  Ends ends = connect_pair({.segment_bytes = kPage, .shared = shared});
  ends.connector.reset();
  shared.reset();
  EXPECT_TRUE(filled(ends.acceptor->shown(), 4));
}

WHERRY_ON_MAPPED_FABRICS(FabricShared);

class FabricNotShared : public FabricTest {};

TEST_P(FabricNotShared, AFabricWithoutAMapSaysThatItCannotShow) {
  if (GetParam().maps) GTEST_SKIP() << "has a map";
  EXPECT_EQ(error_of([&] { (void)tested().share(kShown); }), ENOTSUP);
}

WHERRY_ON_EVERY_FABRIC(FabricNotShared);

class FabricSharedProcess : public FabricTest {
 protected:
  void SetUp() override {
    if (!GetParam().maps) GTEST_SKIP() << "no map";
  }
};

/// Memory that a peer may write would let a broken subscriber spoil what others read.
TEST_P(FabricSharedProcess, NobodyElseCanMapItForWriting) {
  const auto shared = tested().share(kShown);
  EXPECT_EQ(::mmap(nullptr, kShown, PROT_READ | PROT_WRITE, MAP_SHARED, shared->descriptor(), 0), MAP_FAILED);
  const Ends ends = connect_pair({.segment_bytes = kPage, .shared = shared});
  auto* const seen = const_cast<std::byte*>(ends.acceptor->shown().data());
  EXPECT_NE(::mprotect(seen, kShown, PROT_READ | PROT_WRITE), 0);
}

TEST_P(FabricSharedProcess, AnotherProcessReadsItAfterTheOwnerWasKilled) {
  const auto listener = listen();
  ChildProcess owner([&] {
    const auto shared = tested().share(kShown);
    fill(shared->bytes(), 5);
    const auto connecting = tested().connect(listener->local(), {.segment_bytes = kPage, .shared = shared});
    const auto connection = finish(*connecting);
    for (;;) (void)wait_for_end(*connection);
  });
  const auto connection = accept(*listener, {.segment_bytes = kPage});
  owner.kill();
  EXPECT_EQ(wait_for_end(*connection), Wake::gone);
  EXPECT_TRUE(filled(connection->shown(), 5));
}

WHERRY_ON_PROCESS_FABRICS(FabricSharedProcess);

TEST(SharedMemory, HasASizeThatMakesSense) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, SharedMemory::kMostBytes + kPage}) {
    EXPECT_EQ(error_of([&] { const SharedMemory memory(bytes); }), EINVAL) << bytes;
  }
}

}  // namespace
}  // namespace wherry::conformance
