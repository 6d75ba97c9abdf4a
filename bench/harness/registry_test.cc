// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/registry.hpp"

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

TEST(Registry, SelectsByNameInTheOrderAsked) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = Registry::find();
  const std::vector<std::string> wanted{"tcp", "wherry"};
  EXPECT_EQ(names(registry.select(wanted)), wanted);
  EXPECT_EQ(registry.select({}).size(), registry.systems.size());
}

TEST(Registry, ANameThatIsNotThereIsRefusedWithThoseThatAre) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = Registry::find();
  const std::vector<std::string> wanted{"tpc"};
  EXPECT_THAT([&] { (void)registry.select(wanted); },
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("tpc"), HasSubstr("tcp"))));
}

TEST(Registry, OfTwoOfOneNameThatWhoseQuestionItIsAnswers) {
  class Asked final : public System {
   public:
    explicit Asked(std::string question) : question_(std::move(question)) {}
    [[nodiscard]] std::string name() const override { return "twice"; }
    [[nodiscard]] std::string question() const override { return question_; }
    [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }
    Outcome run(const Sample& /*sample*/) override { return {}; }

   private:
    std::string question_;
  };
  Registry registry;
  for (const char* question : {"zmq", "", "scif"}) registry.systems.push_back(std::make_unique<Asked>(question));
  const std::vector<std::string> twice{"twice"};
  for (const char* question : {"zmq", "scif"}) {
    ASSERT_EQ(registry.select(twice, question).size(), 1U);
    EXPECT_EQ(registry.select(twice, question)[0]->question(), question);
  }
  EXPECT_EQ(registry.select(twice, "stream")[0]->question(), "");
}

TEST(Registry, APeerWhoseLibraryWasNotThereIsMissingAndTheReasonNamesThePackage) {
  const TemporaryDirectory empty;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", empty.path().c_str());
  const Registry registry = Registry::find();
  const auto nanomsg = [](const Missing& one) {
    return one.name == "nanomsg-ipc" && one.reason.find("libnanomsg-dev") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(registry.missing.begin(), registry.missing.end(), nanomsg), 1);
}

TEST(Registry, AModuleThatCannotBeLoadedIsMissingWithItsReason) {
  const TemporaryDirectory folder;
  const ScopedEnvironment peers("WHERRY_BENCH_PEERS", folder.path().c_str());
  std::ofstream(folder.path() / "wherry-peer-broken.so") << "no library";
  const Registry registry = Registry::find();
  const auto broken = [](const Missing& one) { return one.name == "broken" && !one.reason.empty(); };
  EXPECT_EQ(std::count_if(registry.missing.begin(), registry.missing.end(), broken), 1);
  const std::vector<std::string> wanted{"broken"};
  EXPECT_THAT([&] { (void)registry.select(wanted); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("broken is not here")));
}

}  // namespace
}  // namespace wherry::bench
