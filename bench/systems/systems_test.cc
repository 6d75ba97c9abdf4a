// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/systems.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/scoped_environment.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench {
namespace {

using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> names(const std::vector<System*>& systems) {
  std::vector<std::string> found;
  for (const System* system : systems) found.push_back(system->name());
  return found;
}

TEST(Systems, SelectsByNameInTheOrderAsked) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = find_systems();
  const std::vector<std::string> wanted{"tcp", "wherry"};
  EXPECT_EQ(names(registry.select(wanted)), wanted);
  EXPECT_EQ(registry.select({}).size(), registry.systems.size());
}

TEST(Systems, ANameThatIsNotThereIsRefusedWithThoseThatAre) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = find_systems();
  const std::vector<std::string> wanted{"tpc"};
  EXPECT_THAT([&] { (void)registry.select(wanted); },
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("tpc"), HasSubstr("tcp"))));
}

TEST(Systems, APeerWhoseLibraryWasNotThereIsMissingAndTheReasonNamesThePackage) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = find_systems();
  const auto nanomsg = [](const Missing& one) {
    return one.name == "nanomsg-ipc" && one.reason.find("libnanomsg-dev") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(registry.missing.begin(), registry.missing.end(), nanomsg), 1);
}

TEST(Systems, AModuleThatCannotBeLoadedIsMissingWithItsReason) {
  const TemporaryDirectory folder;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", folder.path().c_str());
  std::ofstream(folder.path() / "wherry-peer-broken.so") << "no library";
  const Registry registry = find_systems();
  const auto broken = [](const Missing& one) { return one.name == "broken" && !one.reason.empty(); };
  EXPECT_EQ(std::count_if(registry.missing.begin(), registry.missing.end(), broken), 1);
  const std::vector<std::string> wanted{"broken"};
  EXPECT_THAT([&] { (void)registry.select(wanted); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("broken is not here")));
}

}  // namespace
}  // namespace wherry::bench
