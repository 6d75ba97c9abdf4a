// SPDX-License-Identifier: Apache-2.0
// How much memory a worker gets: about what it asks for, and more as its file grows.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "fixture_test.hpp"
#include "wire.hpp"

namespace wherry::root {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kUnit = 2 * kMiB;  // as the default is
constexpr ClientOptions kSwift{.swift = std::chrono::hours(1)};

TEST(Grants, AreForAFewFilesOfTheSizeThatIsAskedFor) {
  WindowServer server("wherry://*:*");
  for (const std::size_t bytes : {1 * kKiB, 64 * kKiB, 65 * kKiB, 100 * kKiB, 400 * kKiB}) {
    WindowClient client(server.local().to_string());
    client.grow(bytes);
    EXPECT_GE(server.statistics().held, bytes);
    EXPECT_LE(server.statistics().held, std::max(128 * kKiB, 5 * bytes)) << bytes;
    client.finish();
    next_of(server, Event::Kind::finished);
  }
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(Grants, AreWholeUnitsForLargeFiles) {
  WindowServer server("wherry://*:*");
  for (const std::size_t bytes : {kUnit / 4 + 1, kUnit, kUnit + 1, 5 * kUnit}) {
    WindowClient client(server.local().to_string());
    client.grow(bytes);
    EXPECT_EQ(server.statistics().held, (bytes + kUnit - 1) / kUnit * kUnit) << bytes;
    client.finish();
    next_of(server, Event::Kind::finished);
  }
}

TEST(Grants, BecomeAUnitForAWorkerThatGoesOnFasterThanItIsRead) {
  constexpr std::uint64_t kFiles = 40;
  WindowServer server("wherry://*:*");
  std::thread worker([&] {
    WindowClient client(server.local().to_string(), kSwift);
    for (std::uint64_t file = 0; file < kFiles; ++file) post_file(client, file, 64 * kKiB);
    client.finish();
  });
  std::deque<PostedFile> behind;  // as many as fill its first lease
  std::size_t held = 0;
  for (std::uint64_t file = 0; file < kFiles; ++file) {
    behind.push_back(next_of(server, Event::Kind::posted).file);
    held = std::max(held, server.statistics().held);
    EXPECT_TRUE(is_whole(behind.front()));
    if (behind.size() < 4 && file + 1 < kFiles) continue;
    behind.front().done();
    behind.pop_front();
  }
  for (PostedFile& file : behind) file.done();
  worker.join();
  EXPECT_GE(held, kUnit);
}

TEST(Grants, StaySmallForAWorkerWhoseFilesAreReadAtOnce) {
  WindowServer server("wherry://*:*");
  WindowClient client(server.local().to_string(), kSwift);
  for (std::uint64_t file = 0; file < 300; ++file) {
    post_file(client, file, 64 * kKiB);
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file));
    event.file.done();
    client.wait();
  }
  EXPECT_EQ(server.statistics().leases, 1U);
  EXPECT_LE(server.statistics().held, 4 * 64 * kKiB);
  client.finish();
}

TEST(Grants, StayWithinTheBudget) {
  constexpr std::uint64_t kWorkers = 6;
  constexpr std::uint64_t kFiles = 150;
  constexpr std::size_t kBudget = 2 * kMiB;
  constexpr std::size_t kLargest = 256 * kKiB;
  WindowServer server(
      "wherry://*:*",
      {.budget = kBudget, .unit = kLargest, .least = 16 * kKiB, .longest_stall = std::chrono::hours(1)});
  std::vector<std::thread> workers;
  for (std::uint64_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      WindowClient client(server.local().to_string(), kSwift);
      for (std::uint64_t file = 0; file < kFiles; ++file) {
        const std::uint64_t number = worker * kFiles + file;
        const std::size_t bytes = 1 + number * 7919 % (file % 5 == 0 ? kLargest : 20 * kKiB);
        client.grow(bytes / 3 + 1);  // and goes on in a larger lease, maybe
        post_file(client, number, bytes);
      }
      client.finish();
    });
  }
  for (std::size_t finished = 0; finished < kWorkers;) {
    auto event = server.next(kTimeout);
    ASSERT_TRUE(event);
    const ServerStatistics now = server.statistics();
    EXPECT_LE(now.held + now.warm, kBudget);
    ASSERT_NE(event->kind, Event::Kind::gone) << event->reason;
    if (event->kind == Event::Kind::finished) ++finished;
    if (event->kind != Event::Kind::posted) continue;
    EXPECT_TRUE(is_whole(event->file)) << event->file.name();
    event->file.done();
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(server.statistics().over_budget_grants, 0U);
  EXPECT_EQ(server.statistics().held, 0U);
}

/// Of a worker without a WindowClient.
void tell_and_hear(FramedStream& server, const RootRecord& record) {
  ASSERT_TRUE(send(server, record).ok());
  ASSERT_TRUE(server.receive(kTimeout).result.ok());
}

FramedStream holder_of_a_lease(const std::string& address) {
  FramedStream worker(connect(address, {.ring_bytes = kControlRing, .windows = true}));
  tell_and_hear(worker, record_of(RootKind::hello, layout::kRootVersion));
  tell_and_hear(worker, record_of(RootKind::need, 0, 1));
  return worker;
}

TEST(Grants, RecalledFromAWorkerThatHasJustFinishedLeaveItFinished) {
  std::atomic<bool> busy{false};
  std::atomic<bool> go_on{false};
  ServerOptions options;
  options.budget = 2 * kUnit;
  options.longest_stall = std::chrono::hours(1);
  options.already = [&](const WorkerId&, std::uint64_t) {
    busy = true;
    go_on.wait(false);
    return false;
  };
  WindowServer server("wherry://*:*", options);
  const std::string address = server.local().to_string();

  FramedStream idle = holder_of_a_lease(address);
  ASSERT_TRUE(send(idle, record_of(RootKind::post, 1, 1), "x").ok());
  Event event = next_of(server, Event::Kind::posted);
  const std::uint64_t idles = event.worker->number;
  event.file.done();
  FramedStream holder = holder_of_a_lease(address);
  std::thread needy([&] {
    WindowClient client(address, kSwift);
    post_file(client, 2, kUnit);
    client.grow(2 * kUnit);  // all that there may be
    client.discard();
    client.finish();
  });
  event = next_of(server, Event::Kind::posted);
  await([&] { return server.statistics().waiting == 1; });

  // The server's thread does not receive `finished` of `idle` before it asks it to leave its lease.
  RootRecord again = record_of(RootKind::post, 1, 1);
  again.flags = layout::kRootAgain;
  ASSERT_TRUE(send(holder, again, "x").ok());
  await([&] { return busy.load(); });
  ASSERT_TRUE(send(idle, record_of(RootKind::leave)).ok());
  ASSERT_TRUE(send(idle, record_of(RootKind::finished)).ok());
  idle.close();
  event.file.done();
  go_on = true;
  go_on.notify_one();
  holder.close();
  for (int over = 0; over < 3;) {
    event = *server.next(kTimeout);
    if (event.kind != Event::Kind::finished && event.kind != Event::Kind::gone) continue;
    ++over;
    if (event.worker->number == idles) {
      EXPECT_EQ(event.kind, Event::Kind::finished) << event.reason;
    }
  }
  needy.join();
}

TEST(Grants, KeptByWorkersThatIdleAreAQuarterOfTheBudgetAtMost) {
  constexpr std::size_t kBudget = 4 * kMiB;
  WindowServer server("wherry://*:*", {.budget = kBudget});
  std::vector<WindowClient> clients;
  for (std::uint64_t worker = 0; worker < 20; ++worker) {
    clients.emplace_back(server.local().to_string(), ClientOptions{.swift = std::chrono::milliseconds(0)});
    post_file(clients.back(), worker, 10);
    next_of(server, Event::Kind::posted).file.done();
  }
  EXPECT_GT(server.statistics().held, kBudget / 8);
  EXPECT_LE(server.statistics().held, kBudget / 4);
  for (WindowClient& client : clients) {
    client.finish();
    next_of(server, Event::Kind::finished);
  }
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(Grants, ThatAreTooSmallAreLeftWithWhatTheFileHas) {
  WindowServer server("wherry://*:*");
  WindowClient client(server.local().to_string(), kSwift);
  post_file(client, 1, 10 * kKiB);
  post_file(client, 2, 10 * kKiB);
  std::size_t written = 0;  // behind the other two
  for (const std::size_t bytes : {5 * kKiB, 100 * kKiB, 300 * kKiB, kUnit, 3 * kUnit}) {
    const auto memory = client.grow(bytes);
    ASSERT_GE(memory.size(), bytes);
    for (; written < bytes; ++written) memory[written] = byte_of(3, written);
  }
  client.post("3", written);
  for (int file = 1; file <= 3; ++file) {
    Event event = next_of(server, Event::Kind::posted);
    EXPECT_TRUE(is_whole(event.file)) << event.file.name();
    event.file.done();
  }
  client.finish();
  next_of(server, Event::Kind::finished);
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(Grants, ThatAreNotThereYetWhenTheServerDiesComeFromTheNext) {
  auto server = std::make_unique<WindowServer>(
      "wherry://*:*", ServerOptions{.budget = kUnit + 128 * kKiB, .longest_stall = std::chrono::hours(1)});
  const std::string address = server->local().to_string();
  WindowClient other(address);
  other.grow(kUnit);
  WindowClient client(address, {.reconnect = kTimeout});
  write_file(client.grow(10 * kKiB).first(10 * kKiB), 7);
  std::thread worker([&] {
    const auto memory = client.grow(kUnit).first(kUnit);  // between two leases
    for (std::size_t at = 10 * kKiB; at < kUnit; ++at) memory[at] = byte_of(7, at);
    client.post("7", kUnit);
  });
  await([&] { return server->statistics().waiting == 1; });
  server.reset();
  server = std::make_unique<WindowServer>(address);
  Event event = next_of(*server, Event::Kind::posted);
  EXPECT_TRUE(is_whole(event.file));
  event.file.done();
  worker.join();
  client.finish();
}

}  // namespace
}  // namespace wherry::root
