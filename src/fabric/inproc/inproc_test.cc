// SPDX-License-Identifier: Apache-2.0
// What inproc does beyond the contract, and the put-only form does as badly as the contract allows. The contract itself
// is checked by tests/conformance.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fabric/fabric.hpp"

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
    EXPECT_TRUE(connection.flush());
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
    ASSERT_TRUE(connector_->flush());
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
  EXPECT_TRUE(connector->flush());
}

TEST(Inproc, TheFormsDoNotMeet) {
  const auto listener = find("inproc").listen({});
  EXPECT_THROW(find("inproc-put").connect(listener->local(), kOffer), Error);
}

TEST(Inproc, FreePortsAreAboveThoseOfTheAdministrator) {
  for (int i = 0; i < 3; ++i) EXPECT_GE(*find("inproc").listen({})->local().port, 1089);
}

}  // namespace
}  // namespace wherry::fabric
