// SPDX-License-Identifier: Apache-2.0
// FI_WAIT_FD: a program of libfabric's sleeps in poll until there is something.
#include "one_sided.hpp"

#include <poll.h>

#include <atomic>
#include <thread>

namespace one_sided {
namespace {

class WaitObjects : public OneSided {
 protected:
  WaitObjects() : OneSided({.wait = FI_WAIT_FD}) {}
  static int descriptor_of(fid& object) {
    int descriptor = -1;
    EXPECT_EQ(fi_control(&object, FI_GETWAIT, &descriptor), 0);
    return descriptor;
  }
  static bool is_readable(int descriptor, int timeout) {
    pollfd asked{descriptor, POLLIN, 0};
    return poll(&asked, 1, timeout) == 1;
  }
  /// Sleeps in poll until the queue has an entry.
  static fi_cq_tagged_entry slept_for(Side& side) {
    const int descriptor = descriptor_of(side.cq->fid);
    fi_cq_tagged_entry entry{};
    while (fi_cq_read(side.cq.object, &entry, 1) == -FI_EAGAIN) {
      fid* object = &side.cq->fid;
      EXPECT_TRUE(fi_trywait(side.fabric.object, &object, 1) != 0 || is_readable(descriptor, -1));
    }
    return entry;
  }
};

TEST_F(WaitObjects, AProcessSleepsInPollUntilThereIsACompletion) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    EXPECT_EQ(slept_for(b_).data, 9U);
    while (!stop) fi_cq_read(b_.cq.object, nullptr, 0);  // its answer may still wait for room
  });
  const std::string text = "wake up";
  ASSERT_EQ(fi_writedata(a_.ep.object, text.data(), text.size(), nullptr, 9, to_, 0, 5, nullptr), 0);
  EXPECT_EQ(slept_for(a_).flags, FI_RMA | FI_WRITE);
  stop = true;
  other.join();
}

TEST_F(WaitObjects, ADescriptorIsSilentWhileThereIsNothing) {
  ASSERT_EQ(write("x", 0), 0);
  a_.next(b_);
  fid* object = &a_.cq->fid;
  while (fi_trywait(a_.fabric.object, &object, 1) != 0) {
  }
  EXPECT_FALSE(is_readable(descriptor_of(a_.cq->fid), 20));
}

TEST_F(WaitObjects, WhatAnotherCallHasBroughtIsToBeReadBeforeASleep) {
  ASSERT_EQ(write("x", 0), 0);
  while (fi_cntr_read(a_.initiated.object) == 0) fi_cq_read(b_.cq.object, nullptr, 0);
  fid* counter = &a_.initiated->fid;
  while (fi_trywait(a_.fabric.object, &counter, 1) != 0) {
  }
  EXPECT_TRUE(is_readable(descriptor_of(a_.cq->fid), 0));
  fid* queue = &a_.cq->fid;
  EXPECT_EQ(fi_trywait(a_.fabric.object, &queue, 1), -FI_EAGAIN);
  ASSERT_EQ(write("y", 0), 0);
  a_.next(b_);
  a_.next(b_);
  EXPECT_EQ(fi_trywait(a_.fabric.object, &counter, 1), -FI_EAGAIN);
  EXPECT_EQ(fi_cntr_read(a_.initiated.object), 2U);
}

TEST_F(WaitObjects, ACounterWakesPollAndItsOwnWait) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) fi_cq_read(b_.cq.object, nullptr, 0);
  });
  const int descriptor = descriptor_of(a_.initiated->fid);
  ASSERT_EQ(write("x", 0), 0);
  while (fi_cntr_read(a_.initiated.object) == 0) {
    fid* object = &a_.initiated->fid;
    EXPECT_TRUE(fi_trywait(a_.fabric.object, &object, 1) != 0 || is_readable(descriptor, -1));
  }
  ASSERT_EQ(write("y", 0), 0);
  EXPECT_EQ(fi_cntr_wait(a_.initiated.object, 2, -1), 0);
  EXPECT_EQ(fi_cntr_wait(a_.initiated.object, 3, 1), -FI_ETIMEDOUT);
  stop = true;
  other.join();
}

TEST_F(WaitObjects, OneThatWasNotAskedForIsNotThere) {
  Side side;
  int descriptor = -1;
  EXPECT_EQ(fi_control(&side.cq->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
}

}  // namespace
}  // namespace one_sided
