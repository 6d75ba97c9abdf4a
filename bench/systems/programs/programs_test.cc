// SPDX-License-Identifier: Apache-2.0
// Peers that are programs of their own, with shell scripts in their place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "bench/systems/programs/description.hpp"
#include "bench/systems/programs/program_system.hpp"
#include "bench/systems/programs/programs.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kIntroduction = "echo processes $$\necho version Fake 1.2\n";
/// A program that answers every sample with what `result` prints.
std::string answering(const std::string& result) {
  return std::string(kIntroduction) +
         "while read -r word what; do [[ $word == end ]] && exit\necho ready\nread -r go\n" + result + "\ndone\n";
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the kernel says a process does: "T" for stopped, "" when there is none (a zombie counts as none).
std::string state_of(pid_t pid) {
  std::ifstream lines(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("State:\t")) return line.substr(7, 1) == "Z" ? "" : line.substr(7, 1);
  }
  return "";
}

/// Has no time limit: the test's watchdog ends a wait that is too long.
void wait_until_state(pid_t pid, const std::string& state) {
  while (state_of(pid) != state) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

class Foreign : public ::testing::Test {
 protected:
  Description program(const std::string& script) {
    const fs::path path = folder_.path() / "program";
    std::ofstream(path) << "#!/bin/bash\ncd " << folder_.path().string() << "\n" << script;
    fs::permissions(path, fs::perms::owner_all);
    Description description;
    description.name = "fake";
    description.program = path;
    description.questions = {Question::stream, Question::latency};
    description.most_senders = 8;
    return description;
  }

  static Sample sample() { return {.size = 64, .messages = 10, .cores = {}, .timeout_seconds = 1000}; }

  pid_t pid_in(const std::string& file) {
    while (read_file(folder_.path() / file).find('\n') == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return std::stoi(read_file(folder_.path() / file));
  }

  TemporaryDirectory folder_;
};

TEST_F(Foreign, ASampleIsWhatTheProgramSays) {
  ForeignSystem system(program(answering("echo done 0.25")));
  EXPECT_EQ(system.run(sample()).seconds, 0.25);
  EXPECT_EQ(system.version(), "Fake 1.2");
}

TEST_F(Foreign, TheProgramIsToldWhatToDoAndWithWhom) {
  ForeignSystem system(program("echo $1 $2 >arguments\n" + answering("echo $what >what; echo done 1")));
  Sample two = sample();
  two.touched = true;
  two.cores = {1, 0};
  system.run(two);
  EXPECT_EQ(read_file(folder_.path() / "arguments"), "1 1,0\n");
  EXPECT_EQ(read_file(folder_.path() / "what"), fmt::format("stream 64 10 {} 1\n", warm_up_messages(two)));
}

TEST_F(Foreign, LatenciesAreSortedAndAsManyAsAsked) {
  ForeignSystem system(program(answering("echo done 3 1 2")));
  Sample latency = sample();
  latency.question = Question::latency;
  latency.messages = 3;
  EXPECT_THAT(system.run(latency).latencies_ns, ElementsAre(1, 2, 3));
  latency.messages = 4;
  EXPECT_THROW(system.run(latency), std::runtime_error);
}

TEST_F(Foreign, AResultThatIsNoNumberIsRefused) {
  for (const char* result : {"echo done", "echo done soon", "echo done 0", "echo done -1", "echo done nan"}) {
    ForeignSystem system(program(answering(result)));
    EXPECT_THROW(system.run(sample()), std::runtime_error) << result;
  }
}

TEST_F(Foreign, AProgramThatEndsFailsTheSampleWithItsLastWords) {
  ForeignSystem system(program(answering("echo it broke >&2; exit 3")));
  EXPECT_THAT([&] { system.run(sample()); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("has ended"), HasSubstr("it broke"))));
}

TEST_F(Foreign, AProgramThatIsNotThereSaysSo) {
  Description description = program("");
  description.program = folder_.path() / "absent";
  ForeignSystem system(description);
  EXPECT_THAT([&] { system.run(sample()); }, ThrowsMessage<std::runtime_error>(HasSubstr("No such file")));
}

TEST_F(Foreign, AProgramThatAnswersSomethingElseFailsTheSample) {
  ForeignSystem system(program(answering("echo what")));
  EXPECT_THAT([&] { system.run(sample()); }, ThrowsMessage<std::runtime_error>(HasSubstr("'what'")));
}

TEST_F(Foreign, AfterAFailureTheProgramStartsAnew) {
  ForeignSystem system(program(answering("[[ -e failed ]] && echo done 1 || { touch failed; exit 1; }")));
  EXPECT_THROW(system.run(sample()), std::runtime_error);
  EXPECT_EQ(system.run(sample()).seconds, 1);
}

TEST_F(Foreign, AProgramThatHangsIsEndedWithAllItStarted) {
  ForeignSystem system(program("setsid sleep 1000 & echo $! >sleeper\n" + answering("sleep 1000")));
  Sample hurried = sample();
  hurried.timeout_seconds = 0.5;
  do {  // Beside load it may be ended before it has started the sleeper.
    EXPECT_THAT([&] { system.run(hurried); }, ThrowsMessage<std::runtime_error>(HasSubstr("does not answer in time")));
  } while (read_file(folder_.path() / "sleeper").find('\n') == std::string::npos);
  EXPECT_EQ(state_of(pid_in("sleeper")), "");
}

TEST_F(Foreign, BetweenSamplesTheProgramStandsStill) {
  ForeignSystem system(program("echo $$ >self\n" + answering("echo done 1")));
  for (int i = 0; i < 2; ++i) {
    system.run(sample());
    wait_until_state(pid_in("self"), "T");
  }
}

TEST_F(Foreign, TheSameProgramTakesSamplesUntilTheNumberOfSendersChanges) {
  ForeignSystem system(program("echo started >>starts\n" + answering("echo done 1")));
  Sample one = sample();
  system.run(one);
  one.size = 128;
  system.run(one);
  EXPECT_EQ(read_file(folder_.path() / "starts"), "started\n");
  one.senders = 8;
  system.run(one);
  EXPECT_EQ(read_file(folder_.path() / "starts"), "started\nstarted\n");
}

TEST_F(Foreign, OnlyTheTimeOfTheSampleIsCounted) {
  const std::string work = "for ((i = 0; i < 30000; ++i)); do :; done\n";
  ForeignSystem idle(program(work + answering("echo done 1")));
  const double nothing = idle.run(sample()).cpu_seconds;
  ForeignSystem busy(program(answering(work + "echo done 1")));
  const double much = busy.run(sample()).cpu_seconds;
  EXPECT_GT(much, 5 * nothing);
}

TEST_F(Foreign, WhatTheProgramLeavesInMemoryIsRemoved) {
  std::string left;
  {
    ForeignSystem system(
        program("echo -n $TMPDIR >left\ntouch $TMPDIR/inside $TMPDIR-beside\n" + answering("echo done 1")));
    system.run(sample());
    left = read_file(folder_.path() / "left");
    EXPECT_TRUE(fs::exists(left + "/inside"));
    EXPECT_TRUE(fs::exists(left + "-beside"));
  }
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(left + "-beside"));
}

TEST_F(Foreign, NothingIsLeftWhenTheBenchmarkItselfIsKilled) {
  const Description description =
      program("echo $$ >self\nsetsid sleep 1000 & echo $! >sleeper\n" + answering("echo done 1"));
  const pid_t bench = ::fork();
  if (bench == 0) {
    ForeignSystem system(description);
    system.run(sample());
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(bench, nullptr, 0), bench);
  wait_until_state(pid_in("self"), "");
  wait_until_state(pid_in("sleeper"), "");
}

TEST_F(Foreign, OnlyWhatTheDescriptionPromisesIsAsked) {
  Description description = program("");
  description.least_size = 8;
  const ForeignSystem system(description);
  const auto can = [&](Question question, std::uint32_t senders, std::size_t size) {
    return system.can({.question = question, .size = size, .senders = senders, .cores = {}});
  };
  EXPECT_TRUE(can(Question::stream, 8, 8));
  EXPECT_FALSE(can(Question::asleep, 1, 8));
  EXPECT_FALSE(can(Question::stream, 9, 8));
  EXPECT_FALSE(can(Question::stream, 1, 7));
}

TEST_F(Foreign, EachPeerIsHereOrSaidToBeMissing) {
  const auto describe = [&](const char* name, const char* text) {
    fs::create_directories(folder_.path() / name);
    std::ofstream(folder_.path() / name / "peer.json") << text;
  };
  describe("mpich", R"({"name": "mpich", "settings": "s", "program": "p", "questions": ["stream"]})");
  describe("ompi", R"({"name": "ompi", "missing": "no compiler"})");
  describe("iceoryx2", "{");
  ::setenv("WHERRY_BENCH_PEERS", folder_.path().c_str(), 1);
  Registry registry;
  add_programs(registry);
  ::unsetenv("WHERRY_BENCH_PEERS");
  ASSERT_EQ(registry.systems.size(), 1U);
  EXPECT_EQ(registry.systems[0]->name(), "mpich");
  // Those of one question only are missed by that question only.
  EXPECT_THAT(registry.missing,
              Contains(AllOf(Field(&Missing::name, "python-wherry"), Field(&Missing::reason, HasSubstr("not built")),
                             Field(&Missing::question, "python"))));
  std::erase_if(registry.missing, [](const Missing& one) { return one.question == "python"; });
  EXPECT_THAT(registry.missing,
              ElementsAre(AllOf(Field(&Missing::name, "iceoryx2"), Field(&Missing::reason, HasSubstr("peer.json"))),
                          AllOf(Field(&Missing::name, "ompi"), Field(&Missing::reason, "no compiler")),
                          AllOf(Field(&Missing::name, "aeron-ipc"), Field(&Missing::reason, HasSubstr("not built")))));
}

TEST_F(Foreign, ADescriptionIsReadFromItsFile) {
  std::ofstream(folder_.path() / "peer.json")
      << R"({"name": "a", "question": "python", "settings": "s", "program": "p", "questions": ["latency", "asleep"],)"
      << R"("in_place": true})";
  const Description description = read_description(folder_.path());
  EXPECT_EQ(description.name, "a");
  EXPECT_EQ(description.question, "python");
  EXPECT_EQ(description.program, folder_.path() / "p");
  EXPECT_THAT(description.questions, ElementsAre(Question::latency, Question::asleep));
  EXPECT_TRUE(description.in_place);
  EXPECT_EQ(description.most_senders, 1U);
}

TEST_F(Foreign, ADescriptionThatIsWrongNamesItsFile) {
  const char* wrong[] = {"", "{", "{}", R"({"name": "a"})",
                         R"({"name": "a", "settings": "s", "program": "p", "questions": ["why"]})"};
  for (const char* text : wrong) {
    std::ofstream(folder_.path() / "peer.json") << text;
    EXPECT_THAT([&] { read_description(folder_.path()); }, ThrowsMessage<std::runtime_error>(HasSubstr("peer.json")))
        << text;
  }
}

}  // namespace
}  // namespace wherry::bench
