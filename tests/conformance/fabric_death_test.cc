// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

class FabricDeath : public FabricTest {};

TEST_P(FabricDeath, ASleeperHearsOfItOnBothBells) {
  for (const Bell bell : fabric::kBells) {
    Ends ends = connect_pair();
    std::thread sleeper([&] { EXPECT_EQ(wait_for_end(*ends.acceptor, bell), Wake::gone); });
    std::this_thread::sleep_for(2ms);
    ends.connector.reset();
    sleeper.join();
  }
}

TEST_P(FabricDeath, TheNewsStays) {
  Ends ends = connect_pair();
  EXPECT_FALSE(ends.acceptor->peer_gone());
  const int data = ends.acceptor->descriptor(Bell::data);
  ends.acceptor->arm(Bell::data);
  ends.connector.reset();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(readable(data));
    EXPECT_TRUE(readable(ends.acceptor->descriptor(Bell::space)));
    EXPECT_EQ(wait_for_end(*ends.acceptor), Wake::gone);
    EXPECT_TRUE(ends.acceptor->peer_gone());
    ends.acceptor->silence(Bell::data);
    ends.acceptor->silence(Bell::space);
    ends.acceptor->arm(Bell::data);
    ends.acceptor->disarm(Bell::space);
  }
}

TEST_P(FabricDeath, WhatWasPublishedBeforeIsVisible) {
  for (std::uint64_t round = 1; round <= 20; ++round) {
    Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 65 * kPage});
    std::thread dying([&ends, round] {
      const Bytes bytes(*ends.connector, 64 * kPage);
      fill(bytes, round);
      EXPECT_TRUE(put_all(*ends.connector, kPage, bytes));
      EXPECT_TRUE(ends.connector->signal(0, round, Bell::space));
      EXPECT_TRUE(ends.connector->flush({}).ok());
      ends.connector.reset();
    });
    if (round % 2 == 0) {
      EXPECT_EQ(wait_for_end(*ends.acceptor), Wake::gone);
    }
    while (!ends.acceptor->peer_gone()) std::this_thread::yield();
    EXPECT_EQ(word(*ends.acceptor, 0).load(std::memory_order_acquire), round);
    EXPECT_TRUE(filled(ends.acceptor->segment().subspan(kPage), round));
    dying.join();
  }
}

TEST_P(FabricDeath, NothingMovesAfterwards) {
  Ends ends = connect_pair();
  ends.connector.reset();
  EXPECT_EQ(wait_for_end(*ends.acceptor), Wake::gone);
  const Bytes bytes(*ends.acceptor, 100);
  EXPECT_EQ(ends.acceptor->put(0, bytes), 0U);
  EXPECT_FALSE(ends.acceptor->get(bytes, 0));
  EXPECT_FALSE(ends.acceptor->signal(0, 1, Bell::data));
  EXPECT_FALSE(ends.acceptor->flush({}).ok());
  if (ends.acceptor->map() != nullptr) ends.acceptor->announce(Bell::data);
}

TEST_P(FabricDeath, TheOwnSegmentStays) {
  Ends ends = connect_pair();
  fill(ends.acceptor->segment(), 1);
  ends.connector.reset();
  EXPECT_TRUE(filled(ends.acceptor->segment(), 1));
}

// The sources and the target are unmapped right after a death with puts under way: a fabric that touches them faults.
TEST_P(FabricDeath, NothingIsTouchedAfterwards) {
  for (int round = 0; round < 50; ++round) {
    auto source = std::make_unique<CallersPages>(32 * kPage);
    auto target = std::make_unique<CallersPages>(32 * kPage);
    Ends ends = connect_pair(source->offer(), target->offer());
    for (std::size_t i = 0; i < 32; ++i) {
      if (ends.connector->put(i * kPage, source->bytes().subspan(i * kPage, kPage)) == 0) break;
    }
    if (round % 2 == 0) {
      ends.connector.reset();
      source.reset();
      ends.acceptor.reset();
    } else {
      ends.acceptor.reset();
      target.reset();
      ends.connector.reset();
    }
  }
}

TEST_P(FabricDeath, OneWhoPutsWhileThePeerDiesComesToAnEnd) {
  for (int round = 0; round < 20; ++round) {
    Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 16 * kPage});
    std::thread sender([&] {
      const Bytes bytes(*ends.connector, 15 * kPage);
      // A fabric may notice only when it is asked: then nothing moves any more.
      for (std::uint64_t i = 1; !ends.connector->peer_gone() && put_all(*ends.connector, kPage, bytes); ++i) {
        if (!ends.connector->signal(0, i, Bell::data)) break;
      }
      EXPECT_TRUE(ends.connector->peer_gone());
      EXPECT_EQ(ends.connector->put(kPage, bytes), 0U);
      EXPECT_FALSE(ends.connector->flush({}).ok());
    });
    EXPECT_EQ(await(*ends.acceptor, 0, 1 + round, Bell::data), Wake::rung);
    ends.acceptor.reset();
    sender.join();
  }
}

TEST_P(FabricDeath, BothMayDieAtOnce) {
  for (int round = 0; round < 50; ++round) {
    Ends ends = connect_pair();
    std::thread other([&] { ends.acceptor.reset(); });
    ends.connector.reset();
    other.join();
  }
}

TEST_P(FabricDeath, NothingIsLeftBehind) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  static_cast<void>(connect_pair());  // what a fabric makes once for the process is not a leak
  const auto before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    const CallersPages pages(kPage);
    const Ends ends = connect_pair(pages.offer());
    for (const Bell bell : fabric::kBells) ends.acceptor->descriptor(bell);
  }
  EXPECT_EQ(open_descriptors(), before);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("/memfd:wherry.segment"), line.npos) << line;
}

WHERRY_ON_EVERY_FABRIC(FabricDeath);

}  // namespace
}  // namespace wherry::conformance
