// SPDX-License-Identifier: Apache-2.0
// Guarantees of inproc beyond the contract, and the worst behaviour of the put form that the contract allows.
// tests/conformance checks the contract itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/inproc/net_memory.hpp"
#include "tests/common/in_child.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kPage = 4096;
const Offer kOffer{.segment_bytes = kPage};

class InprocPut : public ::testing::Test {
 protected:
  InprocPut() {
    auto& tested = find("inproc-put");
    const auto listener = tested.listen({});
    const auto connecting = tested.connect(listener->local(), kOffer);
    acceptor_ = listener->try_accept(kOffer);
    connector_ = connecting->try_finish();
  }

  std::unique_ptr<Connection> acceptor_, connector_;
};

/// Puts `first` and then `second` to the same place.
struct Overlap {
  int kept_first = 0;  // all of the earlier put survived
  int mixed = 0;       // part of it
};

Overlap overlap(Connection& connection, std::span<const std::byte> target, std::size_t bytes) {
  const std::vector<std::byte> first(bytes, std::byte{1}), second(bytes, std::byte{2});
  Overlap seen;
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(connection.put(0, first), bytes);
    EXPECT_EQ(connection.put(0, second), bytes);
    EXPECT_TRUE(connection.flush({}).ok());
    const auto ones = std::count(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(bytes), std::byte{1});
    if (ones == static_cast<std::ptrdiff_t>(bytes)) {
      ++seen.kept_first;
    } else if (ones != 0) {
      ++seen.mixed;
    }
  }
  return seen;
}

TEST_F(InprocPut, PutsCompleteOutOfOrder) { EXPECT_GT(overlap(*connector_, acceptor_->segment(), 1).kept_first, 0); }

TEST_F(InprocPut, ThePiecesOfAPutToo) { EXPECT_GT(overlap(*connector_, acceptor_->segment(), 1000).mixed, 0); }

TEST_F(InprocPut, ASourceIsReadLate) {
#if WHERRY_THREAD_SANITIZER
  GTEST_SKIP() << "it is a race on purpose";
#endif
  int late = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> source(kPage, std::byte{1});
    ASSERT_EQ(connector_->put(0, source), kPage);
    std::fill(source.begin(), source.end(), std::byte{2});
    ASSERT_TRUE(connector_->flush({}).ok());
    if (acceptor_->segment()[kPage - 1] == std::byte{2}) ++late;
  }
  EXPECT_GT(late, 0);
}

TEST_F(InprocPut, APutTakesWhatTheQueueHasRoomFor) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  auto& tested = find("inproc-put");
  const auto listener = tested.listen({});
  const auto connecting = tested.connect(listener->local(), kOffer);
  const auto acceptor = listener->try_accept({.segment_bytes = kBytes});
  const auto connector = connecting->try_finish();
  const std::vector<std::byte> source(kBytes);
  const std::size_t taken = connector->put(0, source);
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, kBytes);
  EXPECT_TRUE(connector->flush({}).ok());
}

TEST(Inproc, TheFormsDoNotMeet) {
  const auto listener = find("inproc").listen({});
  EXPECT_THROW(find("inproc-put").connect(listener->local(), kOffer), Error);
}

TEST(Inproc, FreePortsAreAboveThoseOfTheAdministrator) {
  for (int i = 0; i < 3; ++i) EXPECT_GE(*find("inproc").listen({})->local().port, 1089);
}

/// Another thread may have had the lock of the registered memory when the parent forked.
TEST(InprocNet, AForkedChildLeavesRegisteredMemoryAlone) {
  auto& tested = find("inproc-net");
  const Offer offer{.segment_bytes = kPage, .exposes = true};
  const auto listener = tested.listen({});
  const auto connecting = tested.connect(listener->local(), offer);
  const auto acceptor = listener->try_accept(offer);
  const auto connector = connecting->try_finish();
  auto buffer = connector->buffer(kPage);
  alignas(kPage) std::array<std::byte, kPage> memory{};
  auto exposed = connector->exposure()->expose(memory);
  const std::span<const std::byte> registered(buffer.get(), kPage);
  const std::span<const std::byte> view(exposed->pieces()[0].view, kPage);
  test::in_child([&] {
    buffer.reset();
    exposed.reset();
    EXPECT_TRUE(inproc::NetMemory::instance().covers(registered));
    EXPECT_TRUE(inproc::NetMemory::instance().covers(view));
  });
  buffer.reset();
  exposed.reset();
  EXPECT_FALSE(inproc::NetMemory::instance().covers(registered));
  EXPECT_FALSE(inproc::NetMemory::instance().covers(view));
}

}  // namespace
}  // namespace wherry::fabric
