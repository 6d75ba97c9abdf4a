// SPDX-License-Identifier: Apache-2.0
#include "file/mount/open_file.hpp"

#include <gtest/gtest.h>

namespace wherry::file::mount {
namespace {

/// The number of looks until the next one that asks.
int looks_until_due(DelegationPolicy& policy) {
  int looks = 1;
  while (!policy.is_due()) ++looks;
  return looks;
}

TEST(DelegationPolicy, AFileThatIsReadOnceIsNotAskedFor) {
  DelegationPolicy policy;
  EXPECT_GT(looks_until_due(policy), 2);
}

TEST(DelegationPolicy, WhatWasGrantedIsAskedForAtEachLook) {
  DelegationPolicy policy;
  looks_until_due(policy);
  for (int i = 0; i < 10; ++i) {
    policy.note(true);
    EXPECT_EQ(looks_until_due(policy), 1);
  }
}

TEST(DelegationPolicy, WhatIsRefusedIsAskedForLessAndLess) {
  DelegationPolicy policy;
  int all = 0;
  int asked = 0;
  for (; all < 10'000; ++asked) {
    all += looks_until_due(policy);
    policy.note(false);
  }
  EXPECT_LT(asked, 30);
  policy.note(true);
  policy.note(false);
  EXPECT_LT(looks_until_due(policy), 10) << "after a grant it begins anew";
}

}  // namespace
}  // namespace wherry::file::mount
