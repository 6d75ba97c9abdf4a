// SPDX-License-Identifier: Apache-2.0
#include "fabric/faulty/faulty.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <vector>

#include "fabric/faulty/connection.hpp"

namespace wherry::fabric::faulty {
namespace {

/// A call that reached the wrapped connection.
struct Call {
  std::uint64_t offset;
  std::size_t bytes;
  std::uint64_t value;  // 0: a put
  bool operator==(const Call&) const = default;
};

/// Accepts every put whole, and records all calls.
class Recorder final : public Connection, private PrivateMemory {
 public:
  explicit Recorder(std::vector<Call>& calls, int flush_error = 0) : calls_(calls), flush_error_(flush_error) {}

  [[nodiscard]] std::span<std::byte> segment() const override { return {}; }
  [[nodiscard]] std::size_t remote_bytes() const override { return std::size_t{1} << 20; }
  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override {
    calls_.push_back({offset, source.size(), 0});
    return source.size();
  }
  bool get(std::span<std::byte>, std::uint64_t) override { return true; }
  PrivateMemory* private_memory() override { return this; }
  bool reachable() override { return true; }
  bool recognise() override { return true; }
  std::size_t read(std::span<std::byte> destination, std::uint64_t) override { return destination.size(); }
  std::size_t write(std::uint64_t, std::span<const std::byte> source) override { return source.size(); }
  bool signal(std::uint64_t offset, std::uint64_t value, Bell) override {
    calls_.push_back({offset, 8, value});
    return true;
  }
  Result flush(Deadline) override { return flush_error_ == 0 ? Result::moved(0) : Result::failure(flush_error_); }
  void arm(Bell) override {}
  void disarm(Bell) override {}
  bool silence(Bell) override { return false; }
  Wake wait(Bell, Deadline) override { return Wake::timeout; }
  int descriptor(Bell) override { return -1; }
  void notify_self(Bell) override { calls_.push_back({0, 0, 1}); }
  bool peer_gone() override { return false; }
  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const Greeting& peer_greeting() const override { return greeting_; }

 protected:
  bool notify(Bell) override { return true; }

 private:
  std::vector<Call>& calls_;
  const int flush_error_;
  Peer peer_;
  Greeting greeting_{};
};

struct Played {
  std::vector<std::size_t> taken;
  std::vector<Call> calls;
  bool operator==(const Played&) const = default;
};

constexpr std::size_t kPutBytes = 100;
constexpr std::uint64_t kPuts = 200;

/// Puts consecutive ranges, with a signal after every ten.
Played play(const FaultPlan& plan) {
  Played result;
  FaultyConnection connection(std::make_unique<Recorder>(result.calls), plan);
  const std::vector<std::byte> source(kPutBytes);
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    result.taken.push_back(connection.put(i * kPutBytes, source));
    if (i % 10 == 9) connection.signal(0, i, Bell::data);
  }
  return result;
}

TEST(FaultPlan, IsReadFromItsText) {
  const FaultPlan plan = FaultPlan::parse(
      "seed=7,refuse=1,short=2,reorder=3,delay=4,spurious=5,die=6,hide_map=1,private=8,unacknowledged=1,hide_peer=1");
  EXPECT_EQ(plan, (FaultPlan{7, 1, 2, 3, 4, 5, 6, 1, 8, 1, 1}));
  EXPECT_EQ(FaultPlan::parse(""), FaultPlan{});
}

TEST(FaultPlan, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"shorten=1", "short", "short=", "short=x", "short=101", "hide_map=2", "short=1;die=2", "=1"}) {
    try {
      FaultPlan::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), EINVAL);
      EXPECT_NE(error.advice().find("short (at most 100)"), std::string::npos);
    }
  }
}

TEST(FaultyConnection, WithoutFaultsNothingIsChanged) {
  const Played plain = play({});
  EXPECT_EQ(plain.calls.size(), kPuts + kPuts / 10);
  EXPECT_TRUE(std::all_of(plain.taken.begin(), plain.taken.end(), [](std::size_t n) { return n == kPutBytes; }));
}

TEST(FaultyConnection, TheSameSeedMakesTheSameFaults) {
  const FaultPlan plan{.seed = 5, .shorten = 30, .reorder = 50};
  EXPECT_EQ(play(plan), play(plan));
  FaultPlan other = plan;
  other.seed = 6;
  EXPECT_NE(play(plan), play(other));
}

TEST(FaultyConnection, PutsAreShortened) {
  const Played shortened = play({.shorten = 30});
  const auto count = std::count_if(shortened.taken.begin(), shortened.taken.end(),
                                   [](std::size_t n) { return n > 0 && n < kPutBytes; });
  EXPECT_GT(count, 30);
  EXPECT_LT(count, 90);
}

TEST(FaultyConnection, PutsAreCutAndReordered) {
  const Played reordered = play({.reorder = 50});
  int overtaken = 0, cut = 0;
  std::uint64_t furthest = 0;
  for (const Call& call : reordered.calls) {
    if (call.value != 0) continue;
    if (call.offset < furthest) ++overtaken;
    if (call.bytes < kPutBytes) ++cut;
    furthest = std::max(furthest, call.offset);
  }
  EXPECT_GT(overtaken, 20);
  EXPECT_GT(cut, 100);
}

TEST(FaultyConnection, EveryByteOfAPutArrivesBeforeTheSignalAfterIt) {
  const Played reordered = play({.shorten = 30, .reorder = 70});
  std::map<std::uint64_t, std::size_t> arrived;  // put -> bytes
  for (const Call& call : reordered.calls) {
    if (call.value == 0) {
      arrived[call.offset / kPutBytes] += call.bytes;
      continue;
    }
    for (std::uint64_t i = 0; i <= call.value; ++i) ASSERT_EQ(arrived[i], reordered.taken[i]) << i;
  }
}

TEST(FaultyConnection, AccessesToPrivateMemoryStopShort) {
  std::vector<Call> calls;
  FaultyConnection connection(std::make_unique<Recorder>(calls), {.deny = 30});
  PrivateMemory& memory = *connection.private_memory();
  EXPECT_TRUE(memory.reachable() && memory.recognise());
  std::vector<std::byte> bytes(1000);
  int reads = 0, writes = 0;
  for (int i = 0; i < 200; ++i) {
    reads += memory.read(bytes, 1) < bytes.size() ? 1 : 0;
    writes += memory.write(1, bytes) < bytes.size() ? 1 : 0;
  }
  EXPECT_GT(reads, 30);
  EXPECT_LT(reads, 90);
  EXPECT_GT(writes, 30);
  EXPECT_LT(writes, 90);
}

TEST(FaultyConnection, WhoHasNoMapOrIsDeadReachesNoPrivateMemory) {
  std::vector<Call> calls;
  FaultyConnection hidden(std::make_unique<Recorder>(calls), {.hide_map = 1});
  EXPECT_EQ(hidden.private_memory(), nullptr);
  FaultyConnection dead(std::make_unique<Recorder>(calls), {.die = 1});
  PrivateMemory& memory = *dead.private_memory();
  std::vector<std::byte> bytes(1000);
  EXPECT_EQ(memory.read(bytes, 1), 0U);
  EXPECT_EQ(memory.write(1, bytes), 0U);
  EXPECT_FALSE(memory.reachable() || memory.recognise());
}

TEST(FaultyConnection, ArmsAreFollowedByRingsForNothing) {
  std::vector<Call> calls;
  FaultyConnection connection(std::make_unique<Recorder>(calls), {.spurious = 40});
  for (int i = 0; i < 100; ++i) connection.arm(Bell::data);
  EXPECT_GT(calls.size(), 20U);
  EXPECT_LT(calls.size(), 60U);
}

TEST(FaultyConnection, SignalsAreLate) {
  std::vector<Call> calls;
  FaultyConnection connection(std::make_unique<Recorder>(calls), {.delay = 5000});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) connection.signal(0, 1, Bell::data);
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
}

TEST(FaultyConnection, DiesAtTheCallPlanned) {
  const Played dying = play({.reorder = 50, .die = 55});
  EXPECT_EQ(std::count(dying.taken.begin(), dying.taken.end(), kPutBytes), 50);
  for (std::size_t i = 50; i < kPuts; ++i) EXPECT_EQ(dying.taken[i], 0U);
  EXPECT_EQ(std::count_if(dying.calls.begin(), dying.calls.end(), [](const Call& c) { return c.value > 1; }), 4);
}

class FaultyInproc : public ::testing::Test {
 protected:
  inline static const Offer kOffer{.segment_bytes = 4096};

  /// The connector's end is on the faulty fabric, the acceptor's on the plain one.
  void connect(const FaultPlan& plan) {
    faulty_ = std::make_unique<FaultyFabric>(plain_, plan);
    const auto listener = plain_.listen({});
    const auto connecting = faulty_->connect(listener->local(), kOffer);
    acceptor_ = listener->try_accept(kOffer);
    connector_ = connecting->try_finish();
  }

  static bool readable(int descriptor) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  Fabric& plain_ = find("inproc");
  std::unique_ptr<FaultyFabric> faulty_;
  std::unique_ptr<Connection> acceptor_, connector_;
};

TEST_F(FaultyInproc, ConnectsAreRefusedAsOftenAsPlanned) {
  FaultyFabric faulty(plain_, FaultPlan{.refuse = 25});
  const auto listener = plain_.listen({});
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      faulty.connect(listener->local(), kOffer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ECONNREFUSED);
      ++refused;
    }
  }
  EXPECT_GT(refused, 25);
  EXPECT_LT(refused, 75);
}

TEST_F(FaultyInproc, TheMapIsHiddenOnDemand) {
  connect({});
  EXPECT_NE(connector_->map(), nullptr);
  connect({.hide_map = 1});
  EXPECT_EQ(connector_->map(), nullptr);
}

TEST_F(FaultyInproc, NobodyVouchesForThePeerOnDemand) {
  connect({});
  EXPECT_TRUE(connector_->peer().vouched());
  const Address address = connector_->peer().address;
  connect({.hide_peer = 1});
  EXPECT_FALSE(connector_->peer().vouched());
  EXPECT_EQ(connector_->peer().pid, 0);
  EXPECT_EQ(connector_->peer().gid, UINT32_MAX);
  EXPECT_EQ(connector_->peer().address.node, address.node);
}

TEST_F(FaultyInproc, AFlushThatNothingAcknowledgesEndsAtItsDeadlineOrWithThePeer) {
  connect({.unacknowledged = 1});
  EXPECT_TRUE(connector_->signal(0, 1, Bell::data));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_EQ(connector_->flush(deadline).error, ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  acceptor_.reset();
  EXPECT_EQ(connector_->flush({}).error, ECONNRESET);
}

TEST(Faulty, AFlushOfADeadConnectionSaysThatTheFabricBelowMayStillRead) {
  std::vector<Call> calls;
  FaultyConnection connection(std::make_unique<Recorder>(calls, ETIMEDOUT), {.die = 1});
  EXPECT_EQ(connection.flush({}).error, ETIMEDOUT);
}

TEST_F(FaultyInproc, ASleepIsRungOnceBySignalsAndAnnouncementsTogether) {
  connect({});
  acceptor_->arm(Bell::data);
  EXPECT_TRUE(connector_->signal(0, 1, Bell::data));
  EXPECT_FALSE(connector_->announce(Bell::data));
  EXPECT_TRUE(acceptor_->silence(Bell::data));
}

TEST_F(FaultyInproc, ADeadConnectionSaysSoEverywhere) {
  connect({.die = 3});
  EXPECT_TRUE(connector_->signal(0, 1, Bell::data));
  EXPECT_FALSE(connector_->peer_gone());
  EXPECT_FALSE(connector_->signal(0, 2, Bell::data));
  for (const Bell bell : kBells) {
    connector_->arm(bell);
    EXPECT_EQ(connector_->wait(bell, {}), Wake::gone);
    connector_->silence(bell);
    EXPECT_TRUE(readable(connector_->descriptor(bell)));
  }
  EXPECT_TRUE(connector_->peer_gone());
  EXPECT_FALSE(connector_->flush({}).ok());
  EXPECT_FALSE(acceptor_->peer_gone());
  connector_.reset();
  EXPECT_TRUE(acceptor_->peer_gone());
}

}  // namespace
}  // namespace wherry::fabric::faulty
