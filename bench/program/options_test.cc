// SPDX-License-Identifier: Apache-2.0
#include "bench/program/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wherry::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Asked question(const std::string& name) {
  for (const Asked& one : questions()) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no such question");
}

Options parse(const std::string& name, const std::string& line) {
  CLI::App app;
  BenchArguments arguments;
  const Asked asked = question(name);
  arguments.add_to(app, asked);
  app.parse(line);
  return arguments.options(asked);
}

TEST(BenchOptions, DefaultsAreTheQuestions) {
  const Options options = parse("stream", "");
  EXPECT_EQ(options.sizes, question("stream").sizes);
  EXPECT_THAT(options.senders, ElementsAre(1U));
  EXPECT_THAT(options.modes, ElementsAre("handover", "touched"));
  EXPECT_EQ(options.bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(options.samples, 5);
  EXPECT_THAT(options.systems, IsEmpty());
  EXPECT_THAT(parse("many", "").senders, ElementsAre(8U, 60U));
  EXPECT_THAT(parse("latency", "").modes, ElementsAre("handover"));
}

TEST(BenchOptions, ListsAndSizesAreReadAsTheyAreWritten) {
  const Options options =
      parse("many", "--sizes 64,4K,1M --bytes 256M --senders 2,3 --systems tcp,unix --cores 0 --modes touched");
  EXPECT_THAT(options.sizes, ElementsAre(64U, 4096U, 1048576U));
  EXPECT_EQ(options.bytes, std::uint64_t{256} << 20);
  EXPECT_THAT(options.senders, ElementsAre(2U, 3U));
  EXPECT_THAT(options.systems, ElementsAre("tcp", "unix"));
  EXPECT_THAT(options.cores, ElementsAre(0));
  EXPECT_THAT(options.modes, ElementsAre("touched"));
}

TEST(BenchOptions, SmokeTakesOneShortSample) {
  const Options options = parse("stream", "--smoke");
  EXPECT_EQ(options.samples, 1);
  EXPECT_EQ(options.sizes, question("stream").smoke);
  EXPECT_THAT(parse("stream", "--smoke --sizes 8").sizes, ElementsAre(8U));
}

TEST(BenchOptions, WhatIsNotValidIsRefused) {
  for (const char* line : {"--sizes 0", "--sizes 2G", "--sizes x", "--bytes 0", "--samples 0", "--seconds 0",
                           "--modes both", "--cores -1", "--cores 100000", "--plot out.txt", "--senders 4"}) {
    EXPECT_THROW((void)parse("stream", line), CLI::ParseError) << line;
  }
  EXPECT_THROW((void)parse("many", "--senders 0"), CLI::ParseError);
  EXPECT_THROW((void)parse("many", "--senders 1001"), CLI::ParseError);
}

TEST(BenchOptions, WhatWouldDoNothingIsRefusedWithTheReason) {
  for (const char* line : {"root --seconds 1", "root --cores 0,1", "connect --sizes 64", "connect --seconds 1"}) {
    const std::string text = line;
    const std::size_t space = text.find(' ');
    try {
      (void)parse(text.substr(0, space), text.substr(space + 1));
      ADD_FAILURE() << line;
    } catch (const CLI::ParseError& error) {
      EXPECT_THAT(error.what(), HasSubstr("no such option here")) << line;
    }
  }
  EXPECT_EQ(parse("root", "").seconds, 0);
  EXPECT_THAT(parse("root", "").cores, IsEmpty());
  EXPECT_EQ(parse("root", "--files 7").root.files, 7U);
}

}  // namespace
}  // namespace wherry::bench
