// SPDX-License-Identifier: Apache-2.0
// Endpoints by the calls of libfabric's tables, and what the calls change in the domain.
#include "endpoint.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "completion_queue.hpp"
#include "counter.hpp"
#include "domain.hpp"
#include "info.hpp"

namespace wherry::mpi {
namespace {

constexpr std::uint64_t kKey = 5;
constexpr std::size_t kBytes = std::size_t{1} << 20;  // takes progress of both sides

/// An endpoint, and memory that it lends to others.
struct Side {
  Side() {
    EXPECT_EQ(get_info(FI_VERSION(1, 9), nullptr, nullptr, 0, nullptr, &info), 0);
    EXPECT_EQ(open_fabric(info->fabric_attr, &fabric, nullptr), 0);
    EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
    fi_av_attr known{};
    EXPECT_EQ(fi_av_open(domain, &known, &addresses, nullptr), 0);
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_TAGGED;
    EXPECT_EQ(fi_cq_open(domain, &completions, &queue, nullptr), 0);
    fi_cntr_attr counted{};
    for (fid_cntr** each : {&replaced, &counter}) EXPECT_EQ(fi_cntr_open(domain, &counted, each, nullptr), 0);
    EXPECT_EQ(fi_mr_reg(domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr), 0);
    EXPECT_EQ(fi_endpoint(domain, info, &endpoint, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &addresses->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), 0);
    for (fid_cntr* each : {replaced, counter}) EXPECT_EQ(fi_ep_bind(endpoint, &each->fid, FI_WRITE), 0);
    EXPECT_EQ(fi_enable(endpoint), 0);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    for (fid* object : {&endpoint->fid, &region->fid, &counter->fid, &replaced->fid, &queue->fid, &addresses->fid,
                        &domain->fid, &fabric->fid}) {
      EXPECT_EQ(fi_close(object), 0);
    }
    free_info(info);
  }

  fi_addr_t know(Side& other) {
    std::array<char, 64> name{};
    std::size_t bytes = name.size();
    EXPECT_EQ(fi_getname(&other.endpoint->fid, name.data(), &bytes), 0);
    fi_addr_t address = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insert(addresses, name.data(), 1, &address, 0, nullptr), 1);
    return address;
  }

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* queue = nullptr;
  fid_cntr* replaced = nullptr;  // by `counter`
  fid_cntr* counter = nullptr;
  fid_mr* region = nullptr;
  fid_ep* endpoint = nullptr;
  std::vector<char> memory = std::vector<char>(kBytes);
};

class EndpointTest : public testing::Test {
 protected:
  ssize_t write() { return fi_write(a_.endpoint, source_.data(), source_.size(), nullptr, to_, 0, kKey, nullptr); }

  const std::vector<char> source_ = std::vector<char>(kBytes, 'w');
  Side a_, b_;
  const fi_addr_t to_ = a_.know(b_);
};

/// A program that repeats the call is waiting.
TEST_F(EndpointTest, AWriteThatIsToBeRetriedIsNoActivity) {
  DomainLock& lock = Domain::of(&a_.domain->fid).lock();
  CompletionQueue& queue = CompletionQueue::of(&a_.queue->fid);
  {
    const std::lock_guard guard(lock);
    while (!queue.is_full()) queue.write({});
  }
  const std::uint64_t before = lock.activity();
  EXPECT_EQ(write(), -FI_EAGAIN);
  EXPECT_EQ(lock.activity(), before);
  std::array<fi_cq_tagged_entry, 16> entries{};
  EXPECT_GT(fi_cq_read(a_.queue, entries.data(), entries.size()), 0);
  const std::uint64_t room = lock.activity();
  EXPECT_EQ(write(), 0);
  EXPECT_GT(lock.activity(), room);
}

TEST_F(EndpointTest, ACounterThatAnotherReplacedMakesNoProgress) {
  ASSERT_EQ(write(), 0);
  const auto moves = [&](fid_cntr* counter) {
    (void)fi_cq_read(b_.queue, nullptr, 0);
    const std::lock_guard guard(Domain::of(&a_.domain->fid).lock());
    return Counter::of(&counter->fid).waiting().progress();
  };
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(moves(a_.replaced));
  while (!moves(a_.counter)) continue;
  while (fi_cntr_read(a_.counter) == 0) (void)fi_cq_read(b_.queue, nullptr, 0);
  EXPECT_EQ(b_.memory, source_);
}

}  // namespace
}  // namespace wherry::mpi
