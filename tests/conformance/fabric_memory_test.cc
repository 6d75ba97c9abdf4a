// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

class FabricMemory : public FabricTest {};

TEST_P(FabricMemory, SegmentsHaveTheSizesAskedFor) {
  const Ends ends = connect_pair({.segment_bytes = 3 * kPage}, {.segment_bytes = 257 * kPage});
  EXPECT_EQ(ends.connector->segment().size(), 3 * kPage);
  EXPECT_EQ(ends.acceptor->segment().size(), 257 * kPage);
  EXPECT_EQ(ends.connector->remote_bytes(), 257 * kPage);
  EXPECT_EQ(ends.acceptor->remote_bytes(), 3 * kPage);
}

TEST_P(FabricMemory, AnAllocatedSegmentIsPageAlignedAndZeroed) {
  const Ends ends = connect_pair({.segment_bytes = 16 * kPage}, {.segment_bytes = 16 * kPage});
  for (const auto* end : {ends.connector.get(), ends.acceptor.get()}) {
    const auto segment = end->segment();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.data()) % kPage, 0U);
    EXPECT_TRUE(std::all_of(segment.begin(), segment.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_P(FabricMemory, AMapIsThereExactlyWhereItIsDeclared) {
  const Ends ends = connect_pair();
  EXPECT_EQ(ends.connector->map() != nullptr, GetParam().maps);
  EXPECT_EQ(ends.acceptor->map() != nullptr, GetParam().maps);
}

TEST_P(FabricMemory, WhatIsStoredThroughTheMapIsInThePeersSegment) {
  if (!GetParam().maps) GTEST_SKIP() << "no map";
  const CallersPages pages(4 * kPage);
  const Ends ends = connect_pair({.segment_bytes = 8 * kPage}, pages.offer());
  fill({ends.connector->map(), 4 * kPage}, 1);
  fill({ends.acceptor->map(), 8 * kPage}, 2);
  EXPECT_TRUE(filled(ends.acceptor->segment(), 1));
  EXPECT_TRUE(filled(ends.connector->segment(), 2));
  EXPECT_TRUE(filled(pages.bytes(), 1));
}

TEST_P(FabricMemory, CallersMemoryKeepsItsContentAndItsPlace) {
  const CallersPages connectors(4 * kPage), acceptors(64 * kPage);
  fill(connectors.bytes(), 1);
  fill(acceptors.bytes(), 2);
  const Ends ends = connect_pair(connectors.offer(), acceptors.offer());
  EXPECT_EQ(ends.connector->segment().data(), connectors.bytes().data());
  EXPECT_EQ(ends.acceptor->segment().data(), acceptors.bytes().data());
  EXPECT_TRUE(filled(connectors.bytes(), 1));
  EXPECT_TRUE(filled(acceptors.bytes(), 2));
}

TEST_P(FabricMemory, PutsAndGetsReachCallersMemory) {
  const CallersPages pages(4 * kPage);
  fill(pages.bytes(), 1);
  const Ends ends = connect_pair({.segment_bytes = kPage}, pages.offer());
  const Bytes bytes(*ends.connector, pages.bytes().size());
  ASSERT_TRUE(ends.connector->get(bytes, 0));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_TRUE(filled(bytes, 1));
  fill(bytes, 2);
  ASSERT_TRUE(put_all(*ends.connector, 0, bytes));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_TRUE(filled(pages.bytes(), 2));
}

TEST_P(FabricMemory, CallersMemoryIsTheCallersAfterwards) {
  const CallersPages connectors(4 * kPage), acceptors(4 * kPage);
  {
    const Ends ends = connect_pair(connectors.offer(), acceptors.offer());
    fill(connectors.bytes(), 1);
    const Bytes bytes(*ends.connector, acceptors.bytes().size());
    fill(bytes, 2);
    ASSERT_TRUE(put_all(*ends.connector, 0, bytes));
    ASSERT_TRUE(ends.connector->flush({}).ok());
  }
  EXPECT_TRUE(filled(connectors.bytes(), 1));
  EXPECT_TRUE(filled(acceptors.bytes(), 2));
  fill(acceptors.bytes(), 3);
  EXPECT_TRUE(filled(acceptors.bytes(), 3));
}

TEST_P(FabricMemory, CallersMemoryCanBeUsedAgainAndAgain) {
  const CallersPages pages(4 * kPage);
  fill(pages.bytes(), 1);
  for (int i = 0; i < 10; ++i) {
    const Ends ends = connect_pair(pages.offer());
    EXPECT_TRUE(filled(pages.bytes(), 1));
  }
  EXPECT_TRUE(filled(pages.bytes(), 1));
}

TEST_P(FabricMemory, CallersMemoryOfAnUnacceptedConnectorIsTheCallersAgain) {
  const CallersPages pages(4 * kPage);
  fill(pages.bytes(), 1);
  const auto listener = listen();
  tested().connect(listener->local(), pages.offer()).reset();
  EXPECT_TRUE(filled(pages.bytes(), 1));
  fill(pages.bytes(), 2);
  EXPECT_TRUE(filled(pages.bytes(), 2));
}

TEST_P(FabricMemory, AStaleMapHitsNeitherAHoleNorTheCallersMemory) {
  if (!GetParam().maps) GTEST_SKIP() << "no map";
  const CallersPages pages(4 * kPage);
  Ends ends = connect_pair({.segment_bytes = 4 * kPage}, pages.offer());
  fill(pages.bytes(), 1);
  ends.acceptor.reset();
  fill({ends.connector->map(), 4 * kPage}, 2);
  EXPECT_TRUE(filled(pages.bytes(), 1));

  Ends allocated = connect_pair();
  allocated.acceptor.reset();
  fill({allocated.connector->map(), kPage}, 3);
}

WHERRY_ON_EVERY_FABRIC(FabricMemory);

}  // namespace
}  // namespace wherry::conformance
