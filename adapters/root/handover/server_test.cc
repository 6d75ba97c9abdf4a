// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/handover/server/server.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/root/layout/wire.hpp"
#include "fixture_test.hpp"

namespace wherry::root {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kUnit = std::size_t{64} << 10;

bool is_readable(const WindowServer& server) {
  pollfd polled{server.descriptor(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(WindowServer, ReadsInPlaceWhatAnotherProcessWrote) {
  constexpr std::uint64_t kFiles = 20;
  AddressExchange exchange;
  Child worker([&] {
    WindowClient client(exchange.address());
    for (std::uint64_t file = 1; file <= kFiles; ++file) post_file(client, file, 3 * kMiB + 5);
    client.finish();
    return true;
  });
  WindowServer server("wherry://*:*");
  exchange.announce(server);
  for (std::uint64_t file = 1; file <= kFiles; ++file) {
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_EQ(event.file.name(), std::to_string(file));
    EXPECT_EQ(event.file.sequence(), file);
    ASSERT_EQ(event.file.bytes().size(), 3 * kMiB + 5);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
  }
  EXPECT_EQ(next_of(server, Event::Kind::finished).worker->peer.pid, worker.pid());
  EXPECT_EQ(worker.wait(), 0);
}

TEST(WindowServer, TellsWorkersTheirNumberAndWhereTheOutputIs) {
  const std::string longest(layout::kRootMaxOutput, 'x');
  for (const auto& [output, told] : std::vector<std::pair<std::string, std::string>>{
           {"/data/out.root", "/data/out.root"},
           {"/data/", "/data/name.root"},
           {"", ""},
           {longest, longest},
           {longest + "x", ""},
       }) {
    WindowServer server("wherry://*:*", {.output = output});
    const WindowClient first(server.local().to_string());
    const WindowClient second(server.local().to_string());
    EXPECT_EQ(first.output_of("/elsewhere/name.root"), told);
    EXPECT_EQ(second.output_of("name.root"), told);
    EXPECT_EQ(second.number() - first.number(), 1U);
  }
}

TEST(WindowServer, TakesFilesOfManyThreadsAtOnce) {
  constexpr std::uint64_t kWorkers = 8;
  constexpr std::uint64_t kFiles = 40;
  WindowServer server("wherry://*:*", {.budget = 4 * kMiB, .unit = kUnit});
  std::vector<std::thread> workers;
  for (std::uint64_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      WindowClient client(server.local().to_string());
      for (std::uint64_t file = 0; file < kFiles; ++file) {
        const std::uint64_t number = worker * kFiles + file;
        post_file(client, number, 1 + (number * 7919) % (5 * kUnit));
      }
      client.finish();
    });
  }
  std::set<std::string> names;
  for (std::uint64_t finished = 0; finished < kWorkers;) {
    auto event = server.next(kTimeout);
    ASSERT_TRUE(event);
    EXPECT_NE(event->kind, Event::Kind::gone) << event->reason;
    if (event->kind == Event::Kind::finished) ++finished;
    if (event->kind != Event::Kind::posted) continue;
    EXPECT_TRUE(is_whole(event->file));
    EXPECT_TRUE(names.insert(event->file.name()).second) << "twice: " << event->file.name();
    event->file.done();
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(names.size(), kWorkers * kFiles);
  EXPECT_EQ(server.statistics().held, 0U);
  EXPECT_LE(server.statistics().warm, 4 * kMiB);
}

TEST(WindowServer, OfAForkedChildIsDestroyedWithoutAWordToTheWorker) {
  std::optional<WindowServer> server(std::in_place, "wherry://*:*", ServerOptions{.unit = kUnit});
  WindowClient client(server->local().to_string());
  post_file(client, 1, kUnit);
  Event event = next_of(*server, Event::Kind::posted);
  Child child([&] {
    event.file = PostedFile();
    server.reset();
    return true;
  });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_TRUE(is_whole(event.file));
  event.file.done();
  client.wait();
  EXPECT_EQ(client.pending(), 0U);
}

TEST(WindowServer, HasHeardWhatWorkersSaidBeforeWhenItHasSettled) {
  constexpr std::size_t kClients = 8;
  constexpr std::size_t kFiles = 16;
  for (int round = 0; round < 20; ++round) {
    WindowServer server("wherry://*:*");
    std::vector<WindowClient> clients;
    for (std::size_t i = 0; i < kClients; ++i) clients.emplace_back(server.local().to_string());
    for (std::size_t file = 0; file < kFiles; ++file) {
      for (WindowClient& client : clients) post_file(client, file, 10);
    }
    EXPECT_EQ(server.settle(), kClients * (1 + kFiles));
    while (auto event = server.next(milliseconds(0))) {
      if (event->kind == Event::Kind::posted) event->file.done();
    }
  }
}

TEST(WindowServer, KeepsWhatWasWrittenWhileAFileGrows) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  WindowClient client(server.local().to_string());
  std::size_t written = 0;
  for (std::size_t bytes = 1; bytes < 100 * kUnit; bytes = bytes * 3 / 2 + 1) {
    const auto memory = client.grow(bytes);
    ASSERT_GE(memory.size(), bytes);
    for (; written < bytes; ++written) memory[written] = byte_of(7, written);
  }
  client.post("7", written);
  EXPECT_TRUE(is_whole(next_of(server, Event::Kind::posted).file));
}

TEST(WindowServer, RefusesAFileBeyondTheLargest) {
  WindowServer server("wherry://*:*", {.unit = kUnit, .max_file = 4 * kUnit});
  WindowClient client(server.local().to_string());
  EXPECT_EQ(client.max_file(), 4 * kUnit);
  EXPECT_EQ(client.grow(4 * kUnit).size(), 4 * kUnit);
  try {
    client.grow(4 * kUnit + 1);
    FAIL() << "it was given more";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EFBIG);
  }
  post_file(client, 1, 4 * kUnit);  // and goes on
  EXPECT_TRUE(is_whole(next_of(server, Event::Kind::posted).file));
}

TEST(WindowServer, GivesNothingToAWorkerThatIdles) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  std::vector<WindowClient> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(server.local().to_string());
  EXPECT_EQ(server.statistics().workers, 20U);
  EXPECT_EQ(server.statistics().held, 0U);
  post_file(clients[3], 1, 10);
  next_of(server, Event::Kind::posted).file.done();
  clients[3].wait();
  EXPECT_EQ(server.statistics().held, 0U);
  EXPECT_EQ(server.statistics().warm, kUnit);
}

TEST(WindowServer, LetsAWorkerWaitUntilMemoryIsFree) {
  WindowServer server("wherry://*:*", {.budget = 2 * kUnit, .unit = kUnit});
  WindowClient first(server.local().to_string());
  post_file(first, 1, 2 * kUnit);
  Event event = next_of(server, Event::Kind::posted);
  std::thread second([&] {
    WindowClient client(server.local().to_string());
    post_file(client, 2, kUnit);
    client.finish();
  });
  await([&] { return server.statistics().waiting == 1; });
  event.file.done();
  event = next_of(server, Event::Kind::posted);
  EXPECT_TRUE(is_whole(event.file));
  event.file.done();
  second.join();
  EXPECT_EQ(server.statistics().over_budget_grants, 0U);
}

TEST(WindowServer, PutsOffWhoCanHaveALeaseThatComesFreeSoon) {
  for (const bool soon : {true, false}) {
    WindowServer server("wherry://*:*",
                        {.unit = kUnit, .leases_at_once = 1, .soon = std::chrono::hours(soon ? 100000 : 0)});
    WindowClient first(server.local().to_string());
    post_file(first, 1, kUnit);
    Event event = next_of(server, Event::Kind::posted);
    std::thread second([&] {
      WindowClient client(server.local().to_string());
      post_file(client, 2, kUnit);
      client.finish();
    });
    if (soon) await([&] { return server.statistics().waiting == 1; });
    if (!soon) await([&] { return server.statistics().leases == 2; });
    event.file.done();
    event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
    second.join();
    EXPECT_EQ(server.statistics().leases, soon ? 1U : 2U);
  }
}

TEST(WindowServer, PutsNobodyOffForLong) {
  WindowServer server("wherry://*:*", {.unit = kUnit, .leases_at_once = 1, .soon = milliseconds(50)});
  std::vector<WindowClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(server.local().to_string());
  post_file(clients[0], 0, kUnit);
  next_of(server, Event::Kind::posted).file.done();
  for (WindowClient& client : clients) client.grow(kUnit);  // and none is ever given back
  EXPECT_EQ(server.statistics().leases, 4U);
}

TEST(WindowServer, LetsOneGoOnWhereAllWaitForEachOther) {
  constexpr std::size_t kWorkers = 4;
  WindowServer server("wherry://*:*",
                      {.budget = kWorkers * kUnit, .unit = kUnit, .longest_stall = std::chrono::hours(1)});
  std::atomic<std::size_t> begun{0};
  std::vector<std::thread> workers;
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      WindowClient client(server.local().to_string());
      client.grow(kUnit);
      ++begun;
      await([&] { return begun == kWorkers; });
      post_file(client, worker, 3 * kUnit);
      client.finish();
    });
  }
  for (std::size_t files = 0; files < kWorkers; ++files) {
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_GE(server.statistics().over_budget_grants, 1U);
  EXPECT_LE(server.statistics().warm, kWorkers * kUnit) << "what went beyond the budget is paid back";
}

TEST(WindowServer, LetsOneGoOnWhereWhoHoldsTheMemoryIdles) {
  WindowServer server("wherry://*:*", {.budget = kUnit, .unit = kUnit, .longest_stall = milliseconds(10)});
  WindowClient idle(server.local().to_string());
  idle.grow(kUnit);
  WindowClient busy(server.local().to_string());
  post_file(busy, 1, kUnit);
  EXPECT_TRUE(is_whole(next_of(server, Event::Kind::posted).file));
  EXPECT_EQ(server.statistics().over_budget_grants, 1U);
}

TEST(WindowServer, GivesTheMemoryOfADiscardedFileToOthers) {
  WindowServer server("wherry://*:*", {.budget = kUnit, .unit = kUnit, .longest_stall = std::chrono::hours(1)});
  WindowClient first(server.local().to_string());
  first.grow(kUnit);
  EXPECT_EQ(server.statistics().held, kUnit);
  first.discard();
  WindowClient second(server.local().to_string());
  post_file(second, 1, kUnit);
  EXPECT_TRUE(is_whole(next_of(server, Event::Kind::posted).file));
  EXPECT_TRUE(first.file().empty());
}

TEST(WindowServer, TakesWarmMemoryBackWhereItIsNeeded) {
  WindowServer server("wherry://*:*", {.budget = 8 * kUnit, .unit = kUnit, .longest_stall = std::chrono::hours(1)});
  std::vector<WindowClient> clients;
  for (std::uint64_t i = 0; i < 8; ++i) {
    clients.emplace_back(server.local().to_string());
    clients.back().grow(kUnit);
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    post_file(clients[i], i, kUnit);
    next_of(server, Event::Kind::posted).file.done();
  }
  EXPECT_EQ(server.statistics().warm, 8 * kUnit);
  for (std::uint64_t file = 10; file < 14; ++file) {  // each needs the pages of all the others
    post_file(clients[file % 4], file, 7 * kUnit + 1);
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
    clients[file % 4].wait();
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    post_file(clients[i], i + 20, kUnit);
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
  }
  EXPECT_EQ(server.statistics().over_budget_grants, 0U);
}

TEST(WindowServer, TellsAWorkerWhyItsFileWasRefused) {
  WindowServer server("wherry://*:*");
  WindowClient bad(server.local().to_string());
  WindowClient good(server.local().to_string());
  post_file(bad, 1, 100);
  next_of(server, Event::Kind::posted).file.refuse("it is no ROOT file");
  try {
    bad.wait();
    FAIL() << "it was not told";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ECANCELED);
    EXPECT_NE(std::string(error.what()).find("it is no ROOT file"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("not known to be done: 1"), std::string::npos) << error.what();
  }
  EXPECT_EQ(next_of(server, Event::Kind::gone).reason, "it is no ROOT file");
  post_file(good, 2, 100);
  EXPECT_TRUE(is_whole(next_of(server, Event::Kind::posted).file));
}

TEST(WindowServer, RefusesAFileThatItsProgramForgot) {
  WindowServer server("wherry://*:*");
  WindowClient client(server.local().to_string());
  post_file(client, 1, 100);
  (void)next_of(server, Event::Kind::posted);
  EXPECT_THROW(client.wait(), Error);
}

TEST(WindowServer, DropsAWorkerOnRequest) {
  WindowServer server("wherry://*:*");
  WindowClient client(server.local().to_string());
  client.grow(10);
  server.drop(next_of(server, Event::Kind::joined).worker->number, "enough");
  const Event event = next_of(server, Event::Kind::gone);
  EXPECT_EQ(event.reason, "enough");
  EXPECT_NE(event.lost, 0U);
  EXPECT_THROW(client.grow(100 * kMiB), Error);
  EXPECT_EQ(server.statistics().held, 0U);
  server.drop(1234, "nobody");
}

TEST(WindowServer, KeepsHeldFilesReadableAfterItIsGone) {
  auto server = std::make_unique<WindowServer>("wherry://*:*");
  WindowClient client(server->local().to_string());
  post_file(client, 1, kMiB);
  Event event = next_of(*server, Event::Kind::posted);
  server.reset();
  EXPECT_TRUE(is_whole(event.file));
  EXPECT_THROW(client.wait(), Error);
  event.file.done();
}

TEST(WindowServer, HasADescriptorThatIsReadableWhileEventsWait) {
  WindowServer server("wherry://*:*");
  EXPECT_FALSE(is_readable(server));
  WindowClient client(server.local().to_string());
  post_file(client, 1, 10);
  await([&] { return server.statistics().held != 0; });
  EXPECT_TRUE(is_readable(server));
  next_of(server, Event::Kind::posted).file.done();
  EXPECT_FALSE(is_readable(server));
  EXPECT_FALSE(server.next(milliseconds(1)));
  server.interrupt();
  EXPECT_TRUE(is_readable(server));
  EXPECT_FALSE(server.next());
  EXPECT_FALSE(is_readable(server));
}

TEST(WindowServer, SaysWhatIsWrongWithAnOption) {
  EXPECT_THROW(WindowServer("wherry://*:*", {.unit = 1000}), Error);
  EXPECT_THROW(WindowServer("wherry://*:*", {.unit = kMiB, .max_file = kUnit}), Error);
  EXPECT_THROW(WindowServer("wherry://*:*", {.least = 1000}), Error);
  EXPECT_THROW(WindowServer("wherry://*:*", {.files_per_worker = 0}), Error);
}

}  // namespace
}  // namespace wherry::root
