// SPDX-License-Identifier: Apache-2.0
// One-sided operations as a program of libfabric's sees them.
#include "one_sided.hpp"

#include <rdma/fi_atomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace one_sided {
namespace {

TEST_F(OneSided, AWriteThatIsCompleteIsInTheTargetsMemory) {
  for (const std::size_t bytes : {0, 1, 5000, 20'000, 1 << 20}) {
    const std::string text(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_EQ(write(text, 0), 0);
    const fi_cq_tagged_entry entry = a_.next(b_);
    EXPECT_EQ(entry.op_context, this);
    EXPECT_EQ(entry.flags, FI_RMA | FI_WRITE);
    EXPECT_EQ(b_.memory.substr(0, bytes), text);
  }
}

TEST_F(OneSided, AReadGathersRangesIntoBuffers) {
  for (std::size_t i = 0; i < b_.memory.size(); ++i) b_.memory[i] = static_cast<char>('a' + i % 26);
  std::string first(30'000, ' ');
  std::string second(10'000, ' ');
  const std::array<iovec, 2> local{{{first.data(), first.size()}, {second.data(), second.size()}}};
  const std::array<fi_rma_iov, 3> remote{{{100, 5'000, 5}, {200'000, 34'990, 5}, {7, 10, 5}}};
  fi_msg_rma message{local.data(), nullptr, 2, to_, remote.data(), 3, nullptr, 0};
  ASSERT_EQ(fi_readmsg(a_.ep.object, &message, FI_COMPLETION), 0);
  EXPECT_EQ(a_.next(b_).flags, FI_RMA | FI_READ);
  EXPECT_EQ(first + second, b_.memory.substr(100, 5'000) + b_.memory.substr(200'000, 34'990) + b_.memory.substr(7, 10));
}

TEST_F(OneSided, DataOfAWriteIsACompletionOfTheTarget) {
  const std::string text = "with data";
  ASSERT_EQ(fi_inject_writedata(a_.ep.object, text.data(), text.size(), 0x77, to_, 40, 5), 0);
  const fi_cq_tagged_entry entry = b_.next(a_);
  EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.data, 0x77U);
  EXPECT_EQ(entry.len, text.size());
  EXPECT_EQ(b_.memory.substr(40, text.size()), text);
}

TEST_F(OneSided, OperationsAreCountedWhereTheyBeginAndWhereTheyEnd) {
  ASSERT_EQ(fi_mr_bind(b_.region.object, &b_.changed->fid, FI_REMOTE_WRITE), 0);
  const std::string text = "counted";
  std::string back(text.size(), ' ');
  ASSERT_EQ(fi_inject_write(a_.ep.object, text.data(), text.size(), to_, 0, 5), 0);
  ASSERT_EQ(fi_read(a_.ep.object, back.data(), back.size(), nullptr, to_, 0, 5, nullptr), 0);
  while (fi_cntr_read(a_.initiated.object) < 2) fi_cq_read(b_.cq.object, nullptr, 0);
  EXPECT_EQ(back, text);
  EXPECT_EQ(fi_cntr_read(b_.targeted.object), 2U);
  EXPECT_EQ(fi_cntr_read(b_.changed.object), 1U);
  a_.next(b_);  // of the read: an injected write has none
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(a_.cq.object, &entry, 1), -FI_EAGAIN);
  b_.region.close();
}

TEST_F(OneSided, WhatIsNotAllowedIsAnErrorOfTheInitiatorOnly) {
  const std::string before = b_.memory;
  for (const std::size_t bytes : {std::size_t{9}, std::size_t{50'000}}) {
    const std::string text(bytes, 'x');
    ASSERT_EQ(write(text, 0, 6), 0);
    EXPECT_EQ(a_.next_error(b_), FI_ENOKEY);
    ASSERT_EQ(write(text, b_.memory.size() - 8), 0);
    EXPECT_EQ(a_.next_error(b_), FI_EINVAL);
  }
  b_.lend(FI_REMOTE_READ);
  ASSERT_EQ(write("x", 0), 0);
  EXPECT_EQ(a_.next_error(b_), FI_EACCES);
  b_.region.close();
  ASSERT_EQ(write("x", 0), 0);
  EXPECT_EQ(a_.next_error(b_), FI_ENOKEY);
  EXPECT_EQ(fi_cntr_readerr(a_.initiated.object), 6U);
  EXPECT_EQ(b_.memory, before);
  b_.lend(FI_REMOTE_WRITE);
  ASSERT_EQ(write("x", 0), 0);
  a_.next(b_);
  EXPECT_EQ(b_.memory[0], 'x');
}

TEST_F(OneSided, AKeyIsUsedOnce) {
  fid_mr* second = nullptr;
  EXPECT_EQ(fi_mr_reg(b_.domain.object, b_.memory.data(), 8, FI_REMOTE_READ, 0, 5, 0, &second, nullptr), -FI_ENOKEY);
  EXPECT_EQ(fi_mr_key(b_.region.object), 5U);
}

TEST_F(OneSided, AtomicsChangeTheTargetAndReturnWhatItWas) {
  std::uint64_t value = 40;
  std::uint64_t before = 0;
  const auto target = [&] {
    std::uint64_t now = 0;
    std::memcpy(&now, b_.memory.data() + 8, sizeof(now));
    return now;
  };
  ASSERT_EQ(fi_atomic(a_.ep.object, &value, 1, nullptr, to_, 8, 5, FI_UINT64, FI_ATOMIC_WRITE, nullptr), 0);
  EXPECT_EQ(a_.next(b_).flags, FI_ATOMIC | FI_WRITE);
  value = 2;
  ASSERT_EQ(fi_fetch_atomic(a_.ep.object, &value, 1, nullptr, &before, nullptr, to_, 8, 5, FI_UINT64, FI_SUM, nullptr),
            0);
  EXPECT_EQ(a_.next(b_).flags, FI_ATOMIC | FI_READ);
  EXPECT_EQ(before, 40U);
  EXPECT_EQ(target(), 42U);
  const std::uint64_t expected = 42;
  ASSERT_EQ(fi_compare_atomic(a_.ep.object, &value, 1, nullptr, &expected, nullptr, &before, nullptr, to_, 8, 5,
                              FI_UINT64, FI_CSWAP, nullptr),
            0);
  a_.next(b_);
  EXPECT_EQ(before, 42U);
  EXPECT_EQ(target(), 2U);
  ASSERT_EQ(fi_fetch_atomic(a_.ep.object, nullptr, 1, nullptr, &before, nullptr, to_, 8, 5, FI_UINT64, FI_ATOMIC_READ,
                            nullptr),
            0);
  a_.next(b_);
  EXPECT_EQ(before, 2U);
  ASSERT_EQ(fi_inject_atomic(a_.ep.object, &value, 1, to_, 8, 5, FI_UINT64, FI_SUM), 0);
  while (fi_cntr_read(a_.initiated.object) < 5) fi_cq_read(b_.cq.object, nullptr, 0);
  EXPECT_EQ(target(), 4U);
}

TEST_F(OneSided, AskedWhichAtomicsThereAreItSaysHowManyAtOnce) {
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(a_.ep.object, FI_DOUBLE, FI_SUM, &count), 0);
  EXPECT_EQ(count, 512U);
  EXPECT_EQ(fi_fetch_atomicvalid(a_.ep.object, FI_INT32, FI_ATOMIC_READ, &count), 0);
  EXPECT_EQ(fi_compare_atomicvalid(a_.ep.object, FI_UINT64, FI_MSWAP, &count), 0);
  EXPECT_EQ(fi_atomicvalid(a_.ep.object, FI_DOUBLE, FI_BXOR, &count), -FI_EOPNOTSUPP);
  fi_atomic_attr attributes{};
  EXPECT_EQ(fi_query_atomic(a_.domain.object, FI_LONG_DOUBLE, FI_CSWAP, &attributes, FI_COMPARE_ATOMIC), 0);
  EXPECT_EQ(attributes.size, sizeof(long double));
  EXPECT_EQ(fi_query_atomic(a_.domain.object, FI_INT32, FI_SUM, &attributes, FI_TAGGED), -FI_EOPNOTSUPP);
  const std::string many(8192, 'x');
  EXPECT_EQ(fi_atomic(a_.ep.object, many.data(), many.size(), nullptr, to_, 0, 5, FI_INT8, FI_MAX, nullptr),
            -FI_EMSGSIZE);
}

TEST_F(OneSided, AnOperationOnAProcessThatIsKilledFails) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    Side child;
    const Name name = child.name();
    if (::write(sockets[1], name.data(), name.size()) == 64) pause();
    _exit(1);
  }
  Name name{};
  ASSERT_EQ(::read(sockets[0], name.data(), name.size()), 64);
  to_ = a_.know(name);
  ASSERT_EQ(write(std::string(100'000, 'x'), 0), 0);
  kill(pid, SIGKILL);
  EXPECT_EQ(a_.next_error(b_), FI_ECONNRESET);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  for (const int socket : sockets) close(socket);
}

class OneSidedSelective : public OneSided {
 protected:
  OneSidedSelective() : OneSided({.completion = FI_SELECTIVE_COMPLETION}) {}
};

TEST_F(OneSidedSelective, OnlyWhatIsAskedForIsReported) {
  ASSERT_EQ(write("one", 0), 0);
  const std::string text = "two";
  const iovec local{const_cast<char*>(text.data()), text.size()};
  const fi_rma_iov remote{0, text.size(), 5};
  fi_msg_rma message{&local, nullptr, 1, to_, &remote, 1, &message, 0};
  ASSERT_EQ(fi_writemsg(a_.ep.object, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a_.next(b_).op_context, &message);
  EXPECT_EQ(fi_cntr_read(a_.initiated.object), 2U);
  EXPECT_EQ(b_.memory.substr(0, 3), "two");
}

class OneSidedBasic : public OneSided {
 protected:
  OneSidedBasic() : OneSided({.mr_mode = FI_MR_BASIC}) {}
};

TEST_F(OneSidedBasic, MemoryIsNamedByItsAddressAndAKeyOfTheProviders) {
  const auto address = reinterpret_cast<std::uint64_t>(b_.memory.data());
  ASSERT_EQ(write("basic", address + 3, fi_mr_key(b_.region.object)), 0);
  a_.next(b_);
  EXPECT_EQ(b_.memory.substr(3, 5), "basic");
  ASSERT_EQ(write("basic", address - 1, fi_mr_key(b_.region.object)), 0);
  EXPECT_EQ(a_.next_error(b_), FI_EINVAL);
}

TEST(OneSidedCapabilities, AreAnsweredAsAskedFor) {
  const Info all = offered({});
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->domain_attr->mr_mode, 0);
  EXPECT_NE(all->caps & FI_REMOTE_WRITE, 0U);
  const Info messages = offered({.caps = FI_MSG});
  ASSERT_NE(messages, nullptr);
  EXPECT_EQ(messages->caps & (FI_RMA | FI_ATOMIC | FI_READ | FI_RMA_EVENT), 0U);
  const Info initiator = offered({.caps = FI_RMA | FI_READ | FI_WRITE});
  ASSERT_NE(initiator, nullptr);
  EXPECT_EQ(initiator->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE), 0U);
}

TEST(OneSidedCapabilities, AnEndpointDoesWhatItWasOpenedForOnly) {
  Side reader({.caps = FI_MSG | FI_RMA | FI_READ});
  Side target;
  const fi_addr_t to = reader.know(target.name());
  std::string text(5, ' ');
  EXPECT_EQ(fi_write(reader.ep.object, text.data(), 5, nullptr, to, 0, 5, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_inject_atomic(reader.ep.object, text.data(), 1, to, 0, 5, FI_INT8, FI_SUM), -FI_EOPNOTSUPP);
  ASSERT_EQ(fi_read(reader.ep.object, text.data(), 5, nullptr, to, 0, 5, nullptr), 0);
  reader.next(target);
  const fi_addr_t back = target.know(reader.name());
  ASSERT_EQ(fi_read(target.ep.object, text.data(), 5, nullptr, back, 0, 5, nullptr), 0);
  EXPECT_EQ(target.next_error(reader), FI_EACCES);
}

}  // namespace
}  // namespace one_sided
