// SPDX-License-Identifier: Apache-2.0
#include "wherry_ports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include <wherry/error.hpp>

namespace zmq {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> all(const std::string& name) {
  wherry_ports_t ports(name);
  std::vector<std::string> names;
  while (auto each = ports.next()) names.push_back(*each);
  return names;
}

TEST(ZmqPorts, ANameWithoutARangeIsTriedAsItIs) {
  for (const char* name : {"*:2000", "3:*", "nonsense", "", "*:"}) EXPECT_THAT(all(name), ElementsAre(name));
}

TEST(ZmqPorts, PortZeroIsAnyFreeOneAsForTcp) { EXPECT_THAT(all("*:0"), ElementsAre("*:*")); }

TEST(ZmqPorts, ARangeIsTriedFromItsBeginning) {
  for (const char* name : {"*:*[60000-60002]", "*:[60000-60002]"}) {
    EXPECT_THAT(all(name), ElementsAre("*:60000", "*:60001", "*:60002")) << name;
  }
}

TEST(ZmqPorts, WithAnExclamationMarkItIsTriedFromARandomPort) {
  EXPECT_THAT(all("2:![7-9]"), UnorderedElementsAre("2:7", "2:8", "2:9"));
  std::vector<std::string> firsts;
  for (int i = 0; i < 40; i++) firsts.push_back(all("2:!").front());
  EXPECT_NE(firsts, std::vector<std::string>(40, firsts.front()));
}

TEST(ZmqPorts, ALimitThatIsLeftOutIsThatOfTheDynamicPorts) {
  EXPECT_EQ(all("*:*[-49153]"), (std::vector<std::string>{"*:49152", "*:49153"}));
  EXPECT_EQ(all("*:*[65534-]"), (std::vector<std::string>{"*:65534", "*:65535"}));
  EXPECT_EQ(all("*:![-]").size(), 16384U);
}

TEST(ZmqPorts, ARangeThatIsNoneIsRefusedWithAnExample) {
  for (const char* name :
       {"*:[", "*:[1", "*:*[1]", "*:*[2-1]", "*:*[0-5]", "*:*[1-65536]", "*:*[a-b]", "*:?[1-2]", "*:*[1-2]x"}) {
    try {
      const wherry_ports_t ports(name);
      ADD_FAILURE() << name;
    } catch (const wherry::Error& error) {
      EXPECT_EQ(error.code().value(), EINVAL);
      EXPECT_THAT(error.what(), testing::HasSubstr("*[60000-60100]"));
    }
  }
}

}  // namespace
}  // namespace zmq
