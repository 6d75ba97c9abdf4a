// SPDX-License-Identifier: Apache-2.0
// One-sided operations between two messengers of one process.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <deque>
#include <functional>
#include <string>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

class Log : public Reporter {
 public:
  void sent(const Completion& completion) override { initiated.push_back(completion); }
  void received(const Completion& /*completion*/) override {}
  void accessed(const Completion& completion) override { accesses.push_back(completion); }
  std::deque<Completion> initiated;
  std::deque<Completion> accesses;
};

struct OpenRegion final : Region {
  OpenRegion(std::uint64_t its_key, std::string& text) {
    key = its_key;
    memory = text.data();
    bytes = text.size();
    readable = writable = true;
  }
};

constexpr std::uint64_t kKey = 17;

class RemoteTest : public testing::TestWithParam<bool> {
 protected:
  RemoteTest() {
    b_.serve(regions_, {.reads = true, .writes = true});
    a_.serve(regions_, {.reads = true, .writes = true});
    regions_.add(region_);
    to_ = &a_.link_to(GetParam() ? a_.name() : b_.name());
  }

  RemoteRequest request(Operation operation, std::string& local, std::uint64_t address = 0) {
    RemoteRequest made;
    made.to = to_;
    made.operation = operation;
    (operation == Operation::read ? made.result : made.source) = Buffers(local.data(), local.size());
    made.ranges[0] = {address, local.size(), kKey};
    made.range_count = 1;
    return made;
  }
  RemoteRequest atomic(fi_op action, std::uint64_t& operand, std::uint64_t* before = nullptr) {
    RemoteRequest made;
    made.to = to_;
    made.operation = Operation::atomic;
    made.datatype = FI_UINT64;
    made.action = static_cast<std::uint8_t>(action);
    made.source = Buffers(&operand, sizeof(operand));
    made.fetches = before != nullptr;
    if (before != nullptr) made.result = Buffers(before, sizeof(*before));
    made.ranges[0] = {8, sizeof(operand), kKey};
    made.range_count = 1;
    return made;
  }
  /// Returns its error.
  int done(const RemoteRequest& made) {
    EXPECT_EQ(a_.access(made), 0);
    while (log_a_.initiated.empty()) {
      a_.progress();
      b_.progress();
    }
    const int error = log_a_.initiated.front().error;
    flags_ = log_a_.initiated.front().flags;
    log_a_.initiated.pop_front();
    return error;
  }
  void connect() {
    std::string text(1, '.');
    ASSERT_EQ(done(request(Operation::write, text)), 0);
  }
  std::uint64_t number_at(std::size_t offset) const {
    std::uint64_t number = 0;
    std::memcpy(&number, memory_.data() + offset, sizeof(number));
    return number;
  }

  std::string memory_ = std::string(3 << 20, '.');
  OpenRegion region_{kKey, memory_};
  Regions regions_;
  Log log_a_, log_b_;
  // The eager limit of messages does not apply to one-sided operations, which keep their order.
  static constexpr std::size_t kEager = 4096;
  Messenger a_{log_a_, {}, job_processors(), kEager};
  Messenger b_{log_b_, {}, job_processors(), kEager};
  Link* to_ = nullptr;
  std::uint64_t flags_ = 0;
};
INSTANTIATE_TEST_SUITE_P(ToAPeerAndToItself, RemoteTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Itself" : "APeer"; });

TEST_P(RemoteTest, WhatIsWrittenIsThereWhenTheWriteIsComplete) {
  for (const std::size_t bytes : {1, 100, 16 << 10, (16 << 10) + 1, 3 << 20}) {
    std::string text(bytes, static_cast<char>('a' + bytes % 26));
    EXPECT_EQ(done(request(Operation::write, text)), 0);
    EXPECT_EQ(memory_.substr(0, bytes), text) << bytes;
    EXPECT_EQ(flags_, FI_RMA | FI_WRITE);
  }
}

TEST_P(RemoteTest, AReadGetsWhatIsThere) {
  for (std::size_t i = 0; i < memory_.size(); i += 7) memory_[i] = static_cast<char>('a' + i % 23);
  for (const std::size_t bytes : {1, 100, 16 << 10, (16 << 10) + 1, (3 << 20) - 5}) {
    std::string text(bytes, ' ');
    EXPECT_EQ(done(request(Operation::read, text, 5)), 0);
    EXPECT_EQ(text, memory_.substr(5, bytes)) << bytes;
    EXPECT_EQ(flags_, FI_RMA | FI_READ);
  }
}

TEST_P(RemoteTest, SeveralRangesAreOneOperation) {
  std::string text = "onetwothree";
  RemoteRequest made = request(Operation::write, text);
  made.source = Buffers(std::array{iovec{text.data(), 4}, iovec{text.data() + 4, 7}});
  made.ranges = {{{10, 3, kKey}, {0, 0, 99}, {20, 3, kKey}, {30, 5, kKey}}};
  made.range_count = 4;
  EXPECT_EQ(done(made), 0);
  EXPECT_EQ(memory_.substr(10, 3) + memory_.substr(20, 3) + memory_.substr(30, 5), text);
  std::string back(text.size(), ' ');
  made.operation = Operation::read;
  made.source = Buffers();
  made.result = Buffers(back.data(), back.size());
  EXPECT_EQ(done(made), 0);
  EXPECT_EQ(back, text);
}

TEST_P(RemoteTest, WhatIsNotAllowedFailsAndTouchesNothing) {
  const std::string before = memory_;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{100'000}}) {
    std::string text(bytes, 'x');
    for (const Operation operation : {Operation::write, Operation::read}) {
      RemoteRequest made = request(operation, text);
      made.ranges[0].key = kKey + 1;
      EXPECT_EQ(done(made), FI_ENOKEY);
      EXPECT_EQ(done(request(operation, text, memory_.size() - bytes + 1)), FI_EINVAL);
      EXPECT_EQ(done(request(operation, text, UINT64_MAX - 3)), FI_EINVAL);
      region_.readable = operation != Operation::read;
      region_.writable = operation != Operation::write;
      EXPECT_EQ(done(request(operation, text)), FI_EACCES);
      region_.readable = region_.writable = true;
    }
    EXPECT_EQ(text, std::string(bytes, 'x'));
  }
  EXPECT_EQ(memory_, before);
  std::string text(5, 'x');
  EXPECT_EQ(done(request(Operation::write, text)), 0);
}

TEST_P(RemoteTest, NothingNeedsNoKey) {
  std::string nothing;
  for (const Operation operation : {Operation::write, Operation::read}) {
    RemoteRequest made = request(operation, nothing);
    made.ranges[0].key = 99;
    EXPECT_EQ(done(made), 0);
  }
}

TEST_P(RemoteTest, AnAtomicChangesTheTargetAndTellsWhatItWas) {
  std::uint64_t number = 40;
  std::uint64_t before = 0;
  EXPECT_EQ(done(atomic(FI_ATOMIC_WRITE, number)), 0);
  EXPECT_EQ(flags_, FI_ATOMIC | FI_WRITE);
  number = 2;
  EXPECT_EQ(done(atomic(FI_SUM, number, &before)), 0);
  EXPECT_EQ(flags_, FI_ATOMIC | FI_READ);
  EXPECT_EQ(before, 40U);
  EXPECT_EQ(number_at(8), 42U);
  RemoteRequest swap = atomic(FI_CSWAP, number, &before);
  std::uint64_t expected = 41;
  swap.comparand = Buffers(&expected, sizeof(expected));
  EXPECT_EQ(done(swap), 0);
  EXPECT_EQ(number_at(8), 42U);
  expected = 42;
  EXPECT_EQ(done(swap), 0);
  EXPECT_EQ(before, 42U);
  EXPECT_EQ(number_at(8), 2U);
}

TEST_P(RemoteTest, AnAtomicReadNeedsNoMoreThanToRead) {
  region_.writable = false;
  std::uint64_t none = 0;
  std::uint64_t before = 0;
  RemoteRequest made = atomic(FI_ATOMIC_READ, none, &before);
  made.source = Buffers();
  EXPECT_EQ(done(made), 0);
  EXPECT_EQ(before, number_at(8));
  EXPECT_EQ(done(atomic(FI_SUM, none, &before)), FI_EACCES);
  EXPECT_EQ(done(atomic(FI_SUM, none)), FI_EACCES);
}

TEST_P(RemoteTest, DataOfAWriteReachesTheTargetAfterTheBytes) {
  for (const std::size_t bytes : {0, 5, 100'000}) {
    std::string text(bytes, 'd');
    RemoteRequest made = request(Operation::write, text);
    made.has_data = true;
    made.data = 0x1234'5678'9abc;
    EXPECT_EQ(done(made), 0);
    Log& log = GetParam() ? log_a_ : log_b_;
    ASSERT_EQ(log.accesses.size(), 1U);
    EXPECT_EQ(log.accesses.front().flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(log.accesses.front().data, made.data);
    EXPECT_EQ(log.accesses.front().bytes, bytes);
    EXPECT_TRUE(log.accesses.front().wanted);
    log.accesses.clear();
  }
}

TEST_P(RemoteTest, AnInjectedWriteDoesNotNeedItsBufferAnyLonger) {
  constexpr std::size_t kCount = 150;
  std::string text(kMostInjected, ' ');
  for (std::size_t i = 0; i < kCount; ++i) {
    text.assign(text.size(), static_cast<char>('a' + i % 26));
    RemoteRequest made = request(Operation::write, text, i * text.size());
    made.inject = true;
    while (a_.access(made) == -FI_EAGAIN) b_.progress();
  }
  text.assign(text.size(), '!');
  while (log_a_.initiated.size() < kCount) {
    a_.progress();
    b_.progress();
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(memory_[(i + 1) * kMostInjected - 1], static_cast<char>('a' + i % 26));
  }
}

TEST_P(RemoteTest, ShortOperationsAreCarriedOutInTheirOrder) {
  std::string first(kMostOrdered, '1');
  std::string second(kMostOrdered, '2');
  std::string seen(kMostOrdered, ' ');
  std::uint64_t one = 1;
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(a_.access(request(Operation::write, first)), 0);
    ASSERT_EQ(a_.access(request(Operation::read, seen)), 0);
    ASSERT_EQ(a_.access(request(Operation::write, second)), 0);
    ASSERT_EQ(a_.access(atomic(FI_SUM, one)), 0);
    while (log_a_.initiated.size() < 4) {
      a_.progress();
      b_.progress();
    }
    log_a_.initiated.clear();
    ASSERT_EQ(seen, first);
    ASSERT_EQ(memory_.substr(16, kMostOrdered - 16), second.substr(16));
    ASSERT_EQ(number_at(8), 0x3232323232323233U);
  }
}

TEST_P(RemoteTest, NoneIsClosedForReadingFasterThanItTakesTheAnswers) {
  connect();
  constexpr std::size_t kCount = 12'000;
  std::string seen(kMostOrdered, ' ');
  for (std::size_t i = 0; i < kCount; ++i) {
    int status = 0;
    while ((status = a_.access(request(Operation::read, seen))) == -FI_EAGAIN) b_.progress();
    ASSERT_EQ(status, 0);
    b_.progress();
  }
  while (log_a_.initiated.size() < kCount) {
    a_.progress();
    b_.progress();
  }
  for (const Completion& each : log_a_.initiated) ASSERT_EQ(each.error, 0);
}

class RevokedRegion : public RemoteTest {};
INSTANTIATE_TEST_SUITE_P(OfAPeer, RevokedRegion, testing::Values(false));

TEST_P(RevokedRegion, IsNotTouchedByWhatIsUnderWay) {
  connect();
  std::string large(2 << 20, 'w');
  ASSERT_EQ(a_.access(request(Operation::write, large)), 0);
  std::string short_one(16 << 10, 's');
  std::size_t asked = 1;
  for (; asked < 40; ++asked) ASSERT_EQ(a_.access(request(Operation::write, short_one)), 0);
  for (int i = 0; i < 3; ++i) b_.progress();
  b_.revoke(region_);
  regions_.remove(region_);
  const std::string before = memory_;
  while (log_a_.initiated.size() < asked) {
    a_.progress();
    b_.progress();
  }
  EXPECT_EQ(memory_, before);
  EXPECT_EQ(log_a_.initiated.back().error, FI_ENOKEY);
}

TEST_P(RevokedRegion, AnAnswerThatWaitsForRoomIsStillWhatWasReadThen) {
  connect();
  std::vector<std::string> seen(64, std::string(16 << 10, ' '));
  for (std::string& each : seen) ASSERT_EQ(a_.access(request(Operation::read, each)), 0);
  for (int i = 0; i < 200; ++i) b_.progress();
  b_.revoke(region_);
  regions_.remove(region_);
  memory_.assign(memory_.size(), '!');
  while (log_a_.initiated.size() < seen.size()) {
    a_.progress();
    b_.progress();
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool allowed = log_a_.initiated[i].error == 0;
    EXPECT_EQ(seen[i], std::string(16 << 10, allowed ? '.' : ' ')) << i;
  }
  EXPECT_EQ(log_a_.initiated.front().error, 0);
}

TEST_P(RevokedRegion, OperationsOnAPeerThatClosesFail) {
  std::string text(1 << 20, 'x');
  {
    Log log;
    Messenger gone(log, {});
    gone.serve(regions_, {.reads = true, .writes = true});
    to_ = &a_.link_to(gone.name());
    for (const Operation operation : {Operation::read, Operation::write}) {
      ASSERT_EQ(a_.access(request(operation, text)), 0);
    }
    for (int i = 0; i < 100; ++i) a_.progress();
  }
  while (log_a_.initiated.size() < 2) a_.progress();
  EXPECT_EQ(log_a_.initiated[0].error, FI_ECONNRESET);
  EXPECT_EQ(log_a_.initiated[1].error, FI_ECONNRESET);
}

}  // namespace
}  // namespace wherry::mpi
