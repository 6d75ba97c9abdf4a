// SPDX-License-Identifier: Apache-2.0
#include "message/wait_set.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>

#include <wherry/error.hpp>

#include "tests/common/no_descriptors.hpp"

namespace wherry::message {
namespace {

bool is_readable(int descriptor) {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1;
}

/// A set that was made in part would lack what it is to wait for.
TEST(WaitSet, IsWholeThoughThereWereTooFewDescriptorsAtFirst) {
  if (!NoDescriptors::kPossible) GTEST_SKIP() << "AddressSanitizer needs descriptors";
  WaitSet set(fabric::Bell::data);
  const fabric::EventBell watched;
  for (const rlim_t more : {0, 1}) {  // none for the epoll set, none for its bell
    const NoDescriptors few(more);
    try {
      set.watch(watched.descriptor());
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), EMFILE);
    }
  }
  set.watch(watched.descriptor());
  EXPECT_FALSE(is_readable(set.descriptor()));
  watched.notify();
  EXPECT_TRUE(is_readable(set.descriptor()));
  watched.silence();
  EXPECT_FALSE(is_readable(set.descriptor()));
  set.notify();
  EXPECT_TRUE(is_readable(set.descriptor()));
}

}  // namespace
}  // namespace wherry::message
