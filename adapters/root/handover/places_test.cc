// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <gtest/gtest.h>

namespace wherry::root {
namespace {

constexpr std::size_t kPlace = layout::kRootPlace;

TEST(Places, GiveTheFirstThatIsLargeEnough) {
  Places places;
  EXPECT_EQ(places.first_fit(kPlace, kPlace), 0U);
  places.take(0, 10);
  places.take(3 * kPlace, 5 * kPlace - 1);
  EXPECT_EQ(places.first_fit(2 * kPlace, 100 * kPlace), kPlace);
  EXPECT_EQ(places.first_fit(2 * kPlace + 1, 100 * kPlace), 5 * kPlace);
  places.free(0);
  EXPECT_EQ(places.first_fit(2 * kPlace + 1, 100 * kPlace), 0U);
  EXPECT_EQ(places.count(), 1U);
}

TEST(Places, EndWhereTheyAreToldTo) {
  Places places;
  EXPECT_FALSE(places.first_fit(2 * kPlace, 2 * kPlace - 1));
  places.take(0, 2 * kPlace);
  EXPECT_EQ(places.first_fit(kPlace, 3 * kPlace), 2 * kPlace);
  EXPECT_FALSE(places.first_fit(kPlace + 1, 3 * kPlace));
  EXPECT_FALSE(places.first_fit(1, kPlace)) << "what is taken ends behind that";
}

TEST(Places, KnowWhatLiesOnTopOfWhat) {
  Places places;
  places.take(2 * kPlace, 4 * kPlace);
  EXPECT_TRUE(places.is_free(0, 2 * kPlace));
  EXPECT_FALSE(places.is_free(0, 2 * kPlace + 1));
  EXPECT_FALSE(places.is_free(2 * kPlace, 3 * kPlace));
  EXPECT_FALSE(places.is_free(3 * kPlace, 5 * kPlace));
  EXPECT_FALSE(places.is_free(kPlace, 10 * kPlace));
  EXPECT_TRUE(places.is_free(4 * kPlace, 10 * kPlace));
  EXPECT_EQ(places.free_until(kPlace, 10 * kPlace), 2 * kPlace);
  places.free(2 * kPlace);
  EXPECT_TRUE(places.empty());
  EXPECT_TRUE(places.is_free(0, 10 * kPlace));
}

}  // namespace
}  // namespace wherry::root
