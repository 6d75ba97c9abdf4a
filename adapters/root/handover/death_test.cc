// SPDX-License-Identifier: Apache-2.0
// Workers and servers that are killed, and servers that are restarted.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "fixture_test.hpp"

namespace wherry::root {
namespace {

constexpr std::size_t kUnit = std::size_t{64} << 10;

TEST(WorkerDeath, LosesTheUnfinishedFileAndNothingElse) {
  AddressExchange exchange;
  SharedValue<std::atomic<bool>> writing;
  Child worker([&] {
    WindowClient client(exchange.address());
    post_file(client, 1, 5 * kUnit);
    post_file(client, 2, 5 * kUnit);
    client.wait();
    write_file(client.grow(3 * kUnit), 3);
    *writing = true;
    for (;;) ::pause();
    return true;
  });
  WindowServer server("wherry://*:*", {.unit = kUnit});
  exchange.announce(server);
  for (int file = 0; file < 2; ++file) {
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
  }
  await([&] { return writing->load(); });
  worker.kill();
  const Event event = next_of(server, Event::Kind::gone);
  EXPECT_EQ(event.reason, "it died");
  EXPECT_GE(event.lost, 3 * kUnit);
  EXPECT_EQ(server.statistics().held, 0U);
  EXPECT_EQ(server.statistics().workers, 0U);
}

TEST(WorkerDeath, LeavesWhatItPostedToTheServer) {
  AddressExchange exchange;
  Child worker([&] {
    WindowClient client(exchange.address());
    post_file(client, 1, 5 * kUnit);
    for (;;) ::pause();
    return true;
  });
  WindowServer server("wherry://*:*", {.unit = kUnit});
  exchange.announce(server);
  Event posted = next_of(server, Event::Kind::posted);
  worker.kill();
  next_of(server, Event::Kind::gone);
  EXPECT_TRUE(is_whole(posted.file));
  posted.file.done();
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(WorkerDeath, TakesTheLeaseWithItThatItMayStillHaveWrittenInto) {
  AddressExchange exchange;
  Child worker([&] {
    WindowClient client(exchange.address(), {.swift = std::chrono::hours(1)});
    for (std::uint64_t file = 0; file < 5; ++file) post_file(client, file, 1000);
    for (;;) ::pause();
    return true;
  });
  WindowServer server("wherry://*:*", {.unit = kUnit});
  exchange.announce(server);
  std::vector<PostedFile> files;
  while (files.size() < 5) files.push_back(next_of(server, Event::Kind::posted).file);
  EXPECT_EQ(server.statistics().leases, 2U);
  worker.kill();
  next_of(server, Event::Kind::gone);
  for (PostedFile& file : files) {
    EXPECT_TRUE(is_whole(file));
    file.done();
  }
  EXPECT_EQ(server.statistics().leases, 1U) << "the one that was left to the server";
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(WorkerDeath, AtAnyMomentAltersNobodysFiles) {
  constexpr std::size_t kVictims = 6;
  constexpr std::uint64_t kFiles = 60;
  AddressExchange exchange;
  std::vector<Child> victims;
  for (std::uint64_t victim = 0; victim < kVictims; ++victim) {
    victims.emplace_back([&, victim] {
      WindowClient client(exchange.address());
      for (std::uint64_t file = 0;; ++file) post_file(client, file, 1 + (file * 7919 + 31 * victim) % (4 * kUnit));
      return true;
    });
  }
  Child honest([&] {
    WindowClient client(exchange.address());
    for (std::uint64_t file = 0; file < kFiles; ++file) post_file(client, file, 3 * kUnit);
    client.finish();
    return true;
  });
  WindowServer server("wherry://*:*", {.budget = 16 * kUnit, .unit = kUnit});
  exchange.announce(server);
  std::map<std::uint64_t, std::uint64_t> last;
  std::size_t posted = 0;
  // The victims that joined and live. The death of a process that has not joined is no event.
  std::deque<const Child*> joined;
  bool finished = false;
  for (std::size_t gone = 0; gone < kVictims || !finished;) {
    auto event = server.next(kTimeout);
    ASSERT_TRUE(event);
    if (event->kind == Event::Kind::joined) {
      for (const Child& victim : victims) {
        if (victim.pid() == event->worker->peer.pid) joined.push_back(&victim);
      }
    }
    if (event->kind == Event::Kind::gone) ++gone;
    if (event->kind == Event::Kind::finished) finished = true;
    if (event->kind != Event::Kind::posted) continue;
    EXPECT_TRUE(is_whole(event->file));
    EXPECT_EQ(event->file.sequence(), ++last[event->worker->number]) << "one is missing";
    event->file.done();
    if (++posted % 20 == 0 && !joined.empty()) {
      joined.front()->kill();
      joined.pop_front();
    }
  }
  EXPECT_EQ(honest.wait(), 0);
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(ServerDeath, IsAnErrorThatCountsWhatWasNotDone) {
  AddressExchange exchange;
  SharedValue<std::atomic<bool>> taken;
  Child server_process([&] {
    WindowServer server("wherry://*:*");
    exchange.announce(server);
    next_of(server, Event::Kind::posted).file.done();
    Event held = next_of(server, Event::Kind::posted);
    *taken = true;
    for (;;) ::pause();
    return true;
  });
  WindowClient client(exchange.address());
  post_file(client, 1, 100);
  client.wait();
  post_file(client, 2, 100);
  await([&] { return taken->load(); });
  server_process.kill();
  try {
    client.wait();
    FAIL() << "nobody was there to do it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ECONNRESET);
    EXPECT_NE(std::string(error.what()).find("not known to be done: 1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(client.grow(1), Error) << "and it stays so";
}

/// Which files were put where they belong: what an output file knows.
struct Output {
  static constexpr std::uint64_t kFiles = 40;
  std::array<std::atomic<int>, kFiles + 1> stored{};
};

/// Serves on `port`, and is killed by its own hand in the middle of things `deaths` times.
bool serve(Output& output, const std::string& address, std::uint64_t until) {
  ServerOptions options{.unit = kUnit, .files_per_worker = 8};
  options.already = [&output](const WorkerId&, std::uint64_t sequence) {
    return sequence <= Output::kFiles && output.stored[sequence] != 0;
  };
  WindowServer server(address, options);
  for (std::uint64_t files = 0;;) {
    auto event = server.next(kTimeout);
    if (!event) return false;
    if (event->kind == Event::Kind::finished) return true;
    if (event->kind != Event::Kind::posted) continue;
    if (!is_whole(event->file) || event->file.sequence() > Output::kFiles) return false;
    if (++files == until) std::_Exit(9);  // it had it, and stored nothing
    ++output.stored[event->file.sequence()];
    if (files == until - 1 && until % 2 == 0) std::_Exit(9);  // it stored it, and did not say so
    event->file.done();
  }
}

/// Of a port that the next server can have again, and no other test.
std::string own_address() { return "wherry://0:" + std::to_string(10000 + ::getpid() % 50000); }

/// What a worker does with one server after the other.
void outlive_servers(const std::function<void(WindowClient&)>& work) {
  const std::string address = own_address();
  SharedValue<Output> output;
  SharedValue<std::atomic<bool>> stopped;
  Child servers([&] {
    for (std::uint64_t until = 3;; ++until) {
      Child server([&] { return serve(*output, address, until); });
      const int status = server.wait();
      if (status != 9) return status == 0;
    }
  });
  WindowClient client(address, {.reconnect = kTimeout, .swift = std::chrono::hours(1)});
  work(client);
  client.finish();
  EXPECT_EQ(servers.wait(), 0);
  for (std::uint64_t file = 1; file <= Output::kFiles; ++file) EXPECT_EQ(output->stored[file], 1) << "file " << file;
}

TEST(ServerDeath, BeforeAWorkerFinishesIsNoticedAndTheNextServerIsTold) {
  const std::string address = own_address();
  Child first([&] {
    WindowServer server(address);
    next_of(server, Event::Kind::posted).file.done();
    for (;;) ::pause();
    return true;
  });
  // Which may begin before it.
  WindowClient client(address, {.reconnect = kTimeout});
  post_file(client, 1, 100);
  client.wait();
  client.discard();
  first.kill();
  (void)first.wait();  // the address is free then
  WindowServer server(address);
  client.finish();
  next_of(server, Event::Kind::finished);
}

TEST(ServerDeath, LosesAndDoublesNothingWhenTheServerComesAgain) {
  outlive_servers([](WindowClient& client) {
    for (std::uint64_t file = 1; file <= Output::kFiles; ++file) {
      // In two steps, so that servers die under files that are half written, too.
      const std::size_t bytes = (1 + file % 5) * kUnit + file;
      write_file(client.grow(bytes / 2).first(bytes / 2), file);
      client.wait(file % 3);
      post_file(client, file, bytes);
    }
  });
}

TEST(ServerDeath, LosesAndDoublesNoneOfManySmallFilesThatWait) {
  outlive_servers([](WindowClient& client) {
    for (std::uint64_t file = 1; file <= Output::kFiles; ++file) {
      const std::size_t bytes = 1 + file * 7919 % (kUnit / 4);
      write_file(client.grow(bytes / 2 + 1).first(bytes / 2 + 1), file);
      if (file % 16 == 0) client.wait(3);
      post_file(client, file, bytes);
    }
  });
}

TEST(ServerDeath, GivesUpWhenNoOtherComesInTime) {
  auto server = std::make_unique<WindowServer>("wherry://*:*");
  WindowClient client(server->local().to_string(), {.reconnect = std::chrono::milliseconds(100)});
  post_file(client, 1, 100);
  server.reset();
  EXPECT_THROW(client.wait(), Error);
}

}  // namespace
}  // namespace wherry::root
