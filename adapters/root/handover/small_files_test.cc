// SPDX-License-Identifier: Apache-2.0
// Small files that are posted quickly share a lease.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "fixture_test.hpp"
#include "wire.hpp"

namespace wherry::root {
namespace {

constexpr std::size_t kUnit = std::size_t{64} << 10;
/// However slow this machine is, the test's files come fast.
constexpr std::chrono::hours kAlways(100000);
constexpr ClientOptions kSwift{.swift = std::chrono::hours(1)};

std::vector<PostedFile> take(WindowServer& server, std::size_t count) {
  std::vector<PostedFile> files;
  while (files.size() < count) files.push_back(next_of(server, Event::Kind::posted).file);
  return files;
}

TEST(SmallFiles, LieOneBehindTheOtherInOneLease) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  WindowClient client(server.local().to_string(), kSwift);
  for (std::uint64_t file = 0; file < 17; ++file) post_file(client, file, 3000);
  auto files = take(server, 17);
  // The first had one of its own: it was not known then that others would come.
  EXPECT_EQ(server.statistics().leases, 2U);
  for (std::size_t at = 2; at < files.size(); ++at) {
    EXPECT_EQ(files[at].bytes().data() - files[at - 1].bytes().data(), layout::kRootPlace);
  }
  for (PostedFile& file : files) {
    EXPECT_TRUE(is_whole(file));
    file.done();
  }
  client.finish();
  next_of(server, Event::Kind::finished);
  EXPECT_EQ(server.statistics().held, 0U);
}

TEST(SmallFiles, TakeThePlacesOfThoseThatAreDone) {
  constexpr std::uint64_t kFiles = 500;
  WindowServer server("wherry://*:*", {.unit = kUnit});
  std::thread worker([&] {
    WindowClient client(server.local().to_string(), kSwift);
    for (std::uint64_t file = 0; file < kFiles; ++file) post_file(client, file, 1 + file * 7919 % (kUnit / 4));
    client.finish();
  });
  std::deque<PostedFile> waiting;
  for (std::uint64_t file = 0; file < kFiles; ++file) {
    waiting.push_back(next_of(server, Event::Kind::posted).file);
    if (waiting.size() < 2 && file + 1 < kFiles) continue;
    // Not in order, so that there are holes.
    const std::size_t first = file % waiting.size();
    EXPECT_TRUE(is_whole(waiting[first])) << waiting[first].name();
    waiting[first].done();
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(first));
  }
  for (PostedFile& file : waiting) {
    EXPECT_TRUE(is_whole(file));
    file.done();
  }
  worker.join();
  EXPECT_LE(server.statistics().leases, 2U);
}

TEST(SmallFiles, WaitUpToTheNumberThatMay) {
  constexpr std::size_t kMost = 5;
  WindowServer server("wherry://*:*", {.unit = kUnit, .files_per_worker = kMost});
  std::thread worker([&] {
    WindowClient client(server.local().to_string(), kSwift);
    for (std::uint64_t file = 0; file < 10 * kMost; ++file) post_file(client, file, 100);
    client.finish();
  });
  for (std::size_t round = 0; round < 10; ++round) {
    for (PostedFile& file : take(server, kMost)) {
      EXPECT_TRUE(is_whole(file));
      file.done();
    }
  }
  worker.join();
  next_of(server, Event::Kind::finished);  // and was not refused for one too many
}

TEST(SmallFiles, GrowPastTheEndOfTheirLease) {
  WindowServer server("wherry://*:*", {.unit = kUnit, .max_file = 4 * kUnit});
  WindowClient client(server.local().to_string(), kSwift);
  for (std::uint64_t file = 0; file < 4; ++file) post_file(client, file, kUnit / 4);
  // It begins behind the others, and becomes as large as any file may.
  std::size_t written = 0;
  for (const std::size_t bytes : {std::size_t{100}, kUnit / 4, kUnit, 4 * kUnit}) {
    const auto memory = client.grow(bytes);
    for (; written < bytes; ++written) memory[written] = byte_of(4, written);
  }
  EXPECT_THROW(client.grow(4 * kUnit + 1), Error);
  client.post("4", written);
  for (PostedFile& file : take(server, 5)) {
    EXPECT_TRUE(is_whole(file)) << file.name();
    file.done();
  }
  EXPECT_LE(server.statistics().leases, 2U);
}

TEST(SmallFiles, WaitForTheOneTheyWouldGrowInto) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  WindowClient client(server.local().to_string(), kSwift);
  for (std::uint64_t file = 0; file < 4; ++file) post_file(client, file, kUnit / 4);
  auto files = take(server, 4);
  files[1].done();  // the first in the lease of the others
  client.wait(3);
  std::atomic<bool> grows{false};
  std::thread worker([&] {
    write_file(client.grow(kUnit / 4), 4);
    grows = true;
    post_file(client, 4, kUnit / 2);
  });
  await([&] { return grows.load(); });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(is_whole(files[2]));
    std::this_thread::yield();
  }
  files[2].done();
  worker.join();
  for (PostedFile& file : take(server, 1)) {
    EXPECT_TRUE(is_whole(file));
    file.done();
  }
  files[0].done();
  files[3].done();
  client.finish();
}

TEST(SmallFiles, LeaveTheirLeaseToWhoWaitsForMemory) {
  WindowServer server("wherry://*:*", {.budget = kUnit, .unit = kUnit, .longest_stall = std::chrono::hours(1)});
  std::atomic<bool> served{false};
  std::thread keeper([&] {
    WindowClient client(server.local().to_string(), kSwift);
    for (std::uint64_t file = 0; !served; ++file) post_file(client, file, 1000);
    client.finish();
  });
  for (int file = 0; file < 10; ++file) next_of(server, Event::Kind::posted).file.done();
  std::thread other([&] {
    WindowClient client(server.local().to_string());
    post_file(client, 7, kUnit);
    client.finish();
  });
  for (std::size_t finished = 0; finished < 2;) {
    auto event = server.next(kTimeout);
    ASSERT_TRUE(event);
    if (event->kind == Event::Kind::finished) ++finished;
    if (event->kind != Event::Kind::posted) continue;
    EXPECT_TRUE(is_whole(event->file));
    if (event->file.bytes().size() == kUnit) served = true;
    event->file.done();
  }
  keeper.join();
  other.join();
  EXPECT_EQ(server.statistics().over_budget_grants, 0U);
}

TEST(SmallFiles, OfManyWorkersShareFewLeases) {
  constexpr std::size_t kWorkers = 12;
  constexpr std::uint64_t kFiles = 100;
  WindowServer server("wherry://*:*", {.unit = kUnit, .leases_at_once = 2, .soon = kAlways});
  std::vector<std::thread> workers;
  for (std::uint64_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      WindowClient client(server.local().to_string(), kSwift);
      for (std::uint64_t file = 0; file < kFiles; ++file) {
        post_file(client, worker * kFiles + file, 1 + file * 7919 % (kUnit / 4));
      }
      client.finish();
    });
  }
  std::map<std::uint64_t, std::uint64_t> last;
  for (std::size_t finished = 0; finished < kWorkers;) {
    auto event = server.next(kTimeout);
    ASSERT_TRUE(event);
    if (event->kind == Event::Kind::finished) ++finished;
    if (event->kind != Event::Kind::posted) continue;
    EXPECT_TRUE(is_whole(event->file)) << event->file.name();
    EXPECT_EQ(event->file.sequence(), ++last[event->worker->number]);
    event->file.done();
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& [worker, files] : last) EXPECT_EQ(files, kFiles) << worker;
  EXPECT_EQ(server.statistics().held, 0U);
  EXPECT_EQ(server.statistics().leases, 2U);
}

TEST(SmallFiles, AreToldOfWhenHalfAreDoneOrWhoAsksIsTold) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  FramedStream frames(connect(server.local().to_string(), {.ring_bytes = kControlRing, .windows = true}));
  ASSERT_TRUE(send(frames, record_of(RootKind::hello, layout::kRootVersion)).ok());
  ASSERT_TRUE(send(frames, record_of(RootKind::need, 0, kUnit)).ok());
  for (std::uint64_t file = 0; file < 4; ++file) {
    RootRecord post = record_of(RootKind::post, file + 1, 10);
    post.place = file * layout::kRootPlace;
    ASSERT_TRUE(send(frames, post, "x").ok());
  }
  auto files = take(server, 4);
  const auto told = [&frames] {
    std::vector<std::uint64_t> sequences;
    for (Received next = frames.try_receive(); next.result.ok(); next = frames.try_receive()) {
      const auto message = parse(next.message);
      if (message->kind() == RootKind::done) sequences.push_back(message->record.value);
    }
    return sequences;
  };
  files[2].done();
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
  files[0].done();
  EXPECT_EQ(told(), (std::vector<std::uint64_t>{3, 1}));
  // Four wait and one is done: a worker that asks is told.
  for (const std::uint64_t file : {4, 5}) {
    RootRecord post = record_of(RootKind::post, file + 1, 10);
    post.place = file * layout::kRootPlace;
    ASSERT_TRUE(send(frames, post, "x").ok());
  }
  auto more = take(server, 2);
  files[1].done();
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
  ASSERT_TRUE(send(frames, record_of(RootKind::listen)).ok());
  const auto answered = parse(frames.receive(kTimeout).message);
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->record.value, 2U);
  more[0].done();
  EXPECT_EQ(told(), std::vector<std::uint64_t>{5}) << "it listens still";
  files[3].done();
  more[1].done();
}

TEST(SmallFiles, ThatComeSlowlyLeaveTheirLeaseAtOnce) {
  WindowServer server("wherry://*:*", {.unit = kUnit});
  WindowClient client(server.local().to_string(), {.swift = std::chrono::milliseconds(0)});
  for (std::uint64_t file = 0; file < 5; ++file) {
    post_file(client, file, 100);
    next_of(server, Event::Kind::posted).file.done();
    EXPECT_EQ(server.statistics().held, 0U);
  }
}

}  // namespace
}  // namespace wherry::root
