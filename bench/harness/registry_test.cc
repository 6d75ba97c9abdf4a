// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/registry.hpp"

#include <gtest/gtest.h>

namespace wherry::bench {
namespace {

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

}  // namespace
}  // namespace wherry::bench
