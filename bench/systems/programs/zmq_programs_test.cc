// SPDX-License-Identifier: Apache-2.0
// libzmq's programs, with scripts in their place that listen, connect and print as those do.
#include "bench/systems/programs/zmq_programs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/scoped_environment.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Does what `says` once a peer has connected, and `before` before it listens.
std::string listening(const std::string& says, const std::string& before = "") {
  return "#!/usr/bin/python3\n"
         "import socket, sys\n" +
         before +
         "listener = socket.create_server(('127.0.0.1', int(sys.argv[1].rsplit(':', 1)[1])))\n"
         "listener.accept()\n" +
         says;
}

/// Fails without a listener.
std::string connecting(const std::string& says) {
  return "#!/usr/bin/python3\n"
         "import socket, sys\n"
         "socket.create_connection(('127.0.0.1', int(sys.argv[1].rsplit(':', 1)[1])))\n" +
         says;
}

class ZmqPrograms : public ::testing::Test {
 protected:
  ZmqPrograms() : prefix_("WHERRY_BENCH_ZMQ", folder_.path().c_str()) {
    fs::create_directory(folder_.path() / "bin");
    write("local_thr", listening(""));
    write("remote_thr", connecting(""));
    write("local_lat", listening(""));
    write("remote_lat", connecting(""));
  }

  void write(const std::string& program, const std::string& script) {
    const fs::path path = folder_.path() / "bin" / program;
    std::ofstream(path) << script;
    fs::permissions(path, fs::perms::owner_all);
  }

  Outcome run_over_tcp(const Sample& sample) {
    Registry registry;
    add_zmq_programs(registry);
    return registry.select(std::vector<std::string>{"zmq-tcp"}, "zmq").at(0)->run(sample);
  }

  test::TemporaryDirectory folder_;
  ScopedEnvironment prefix_;
};

TEST_F(ZmqPrograms, TheRateIsThatOfTheMessagesAfterTheFirst) {
  // Of 11 messages the first starts the clock; the program takes all of them for what came in that time.
  write("local_thr", listening("assert sys.argv[2:] == ['1000', '11']\nprint('mean throughput: 8 [msg/s]')\n"
                               "print('mean throughput: 0.044 [Mb/s]')\n"));
  const Outcome outcome = run_over_tcp({.size = 1000, .messages = 10});
  EXPECT_DOUBLE_EQ(outcome.seconds, 2);
  EXPECT_GT(outcome.cpu_seconds, 0);
  EXPECT_GT(outcome.context_switches, 0U);
}

TEST_F(ZmqPrograms, OfRoundTripsTheMeanIsAllThatIsKnown) {
  write("remote_lat", connecting("assert sys.argv[2:] == ['64', '100']\nprint('average latency: 40.500 [us]')\n"));
  const Outcome outcome = run_over_tcp({.question = Question::latency, .size = 64, .messages = 100});
  EXPECT_DOUBLE_EQ(outcome.mean_latency_ns, 40500);
  EXPECT_THAT(outcome.latencies_ns, IsEmpty());
  EXPECT_DOUBLE_EQ(outcome.seconds, 0.0081);
}

TEST_F(ZmqPrograms, TheSenderStartsWhenSomebodyListens) {
  write("local_lat", listening("", "import time\ntime.sleep(0.5)\n"));
  write("remote_lat", connecting("print('average latency: 1.000 [us]')\n"));
  EXPECT_NO_THROW((void)run_over_tcp({.question = Question::latency, .size = 64, .messages = 100}));
}

TEST_F(ZmqPrograms, AProgramThatFailsSaysWhyAndEndsTheOther) {
  write("local_thr", "#!/bin/bash\necho 'error in zmq_bind: Protocol not supported'\nexit 255\n");
  EXPECT_THAT([&] { (void)run_over_tcp({.size = 1000, .messages = 10}); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("local_thr"), HasSubstr("Protocol not supported"))));
}

TEST_F(ZmqPrograms, AProgramThatPrintsNoFigureIsRefused) {
  write("local_thr", listening("print('mean throughput: fast [Mb/s]')\n"));
  EXPECT_THAT([&] { (void)run_over_tcp({.size = 1000, .messages = 10}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("fast")));
}

TEST_F(ZmqPrograms, TheVersionIsThatOfTheLibraryBesideThem) {
  fs::create_directories(folder_.path() / "lib" / "pkgconfig");
  std::ofstream(folder_.path() / "lib" / "pkgconfig" / "libzmq.pc") << "Name: libzmq\nVersion: 4.3.5\n";
  Registry registry;
  add_zmq_programs(registry);
  ASSERT_EQ(registry.systems.size(), 3U);
  for (const auto& system : registry.systems) EXPECT_EQ(system->version(), "4.3.5");
}

TEST_F(ZmqPrograms, WithoutThemEachWayIsMissingAndTheReasonSaysWhatToDo) {
  fs::remove(folder_.path() / "bin" / "remote_lat");
  Registry registry;
  add_zmq_programs(registry);
  EXPECT_THAT(registry.systems, IsEmpty());
  EXPECT_THAT(registry.missing, ElementsAre(Field(&Missing::name, "zmq-wherry"), Field(&Missing::name, "zmq-tcp"),
                                            Field(&Missing::name, "zmq-ipc")));
  EXPECT_THAT(registry.missing,
              Each(AllOf(Field(&Missing::reason, HasSubstr("make zmq")), Field(&Missing::question, "zmq"))));
}

}  // namespace
}  // namespace wherry::bench
