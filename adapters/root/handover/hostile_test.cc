// SPDX-License-Identifier: Apache-2.0
// Workers and servers that violate the protocol.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "fixture_test.hpp"
#include "wire.hpp"

namespace wherry::root {
namespace {

constexpr std::size_t kUnit = std::size_t{64} << 10;
constexpr StreamOptions kStreamOptions{.ring_bytes = kControlRing, .windows = true};
constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

RootRecord hello() { return record_of(RootKind::hello, layout::kRootVersion); }

std::optional<ControlMessage> answer(FramedStream& frames) {
  const Received received = frames.receive(kTimeout);
  return received.result.ok() ? parse(received.message) : std::nullopt;
}

/// Says it as a worker that has been welcomed, and has memory if it asked for some.
class Liar {
 public:
  explicit Liar(const WindowServer& server) : frames(connect(server.local().to_string(), kStreamOptions)) {}
  void greet() {
    say(hello());
    EXPECT_EQ(answer(frames)->kind(), RootKind::welcome);
  }
  void hold(std::size_t bytes) {
    say(record_of(RootKind::need, 0, bytes));
    EXPECT_EQ(answer(frames)->kind(), RootKind::grant);
  }
  void say(const RootRecord& record, std::string_view text = {}) { EXPECT_TRUE(send(frames, record, text).ok()); }

  void post(std::uint64_t sequence, std::uint64_t place, std::uint64_t bytes) {
    RootRecord record = record_of(RootKind::post, sequence, bytes);
    record.place = place;
    say(record, "x");
  }

  FramedStream frames;
};

struct Lie {
  const char* name;
  bool greeted;
  std::function<void(Liar&)> tell;
  bool deaf = false;  ///< its ring has no space for the reason
};

std::ostream& operator<<(std::ostream& out, const Lie& lie) { return out << lie.name; }

class HostileWorker : public testing::TestWithParam<Lie> {};

TEST_P(HostileWorker, IsLetGoAndTheOthersGoOn) {
  WindowServer server("wherry://*:*",
                      {.unit = kUnit, .least = kUnit / 4, .max_file = 16 * kUnit, .files_per_worker = 3});
  WindowClient honest(server.local().to_string());
  write_file(honest.grow(3 * kUnit).first(3 * kUnit), 1);
  Liar liar(server);
  if (GetParam().greeted) liar.greet();
  GetParam().tell(liar);
  std::optional<ControlMessage> last;
  while (auto message = answer(liar.frames)) last = std::move(message);
  ASSERT_TRUE(last);
  const bool told = last->kind() == RootKind::refuse;
  EXPECT_TRUE(told || GetParam().deaf);
  EXPECT_EQ(last->text.empty(), !told);
  if (GetParam().greeted) {
    EXPECT_EQ(next_of(server, Event::Kind::gone).reason, last->text);
  }
  honest.post("1", 3 * kUnit);
  Event event = next_of(server, Event::Kind::posted);
  EXPECT_EQ(event.worker->number, 1U);
  EXPECT_TRUE(is_whole(event.file));
  event.file.done();
  honest.finish();
  await([&] { return server.statistics().workers == 0; });
  EXPECT_EQ(server.statistics().held, 0U);
}

const std::byte kNoise[100]{};

INSTANTIATE_TEST_SUITE_P(
    All, HostileWorker,
    testing::Values(
        Lie{"SaysNothingOfItself", false, [](Liar& liar) { liar.say(record_of(RootKind::need, 0, 1)); }},
        Lie{"SpeaksAnotherVersion", false, [](Liar& liar) { liar.say(record_of(RootKind::hello, 1)); }},
        Lie{"SendsLessThanAMessage", true, [](Liar& liar) { (void)liar.frames.send(std::span(kNoise).first(7)); }},
        Lie{"SendsNothing", true, [](Liar& liar) { (void)liar.frames.send(std::span(kNoise).first(0)); }},
        Lie{"SendsNoise", true, [](Liar& liar) { (void)liar.frames.send(std::span(kNoise)); }},
        Lie{"SendsAnEndlessName", true,
            [](Liar& liar) { liar.say(record_of(RootKind::post, 1, 1), std::string(20000, 'x')); }},
        Lie{"GreetsTwice", true, [](Liar& liar) { liar.say(hello()); }},
        Lie{"SpeaksAsAServer", true, [](Liar& liar) { liar.say(record_of(RootKind::grant, 0, 1)); }},
        Lie{"NeedsNothing", true, [](Liar& liar) { liar.say(record_of(RootKind::need, 0, 0)); }},
        Lie{"NeedsMoreThanThereIs", true, [](Liar& liar) { liar.say(record_of(RootKind::need, 0, kHuge)); }},
        Lie{"NeedsMoreOfALeaseThatDoesNotGrow", true,
            [](Liar& liar) {
              liar.hold(1);
              liar.say(record_of(RootKind::need, 0, kUnit / 4 + 1));
            }},
        Lie{"PostsPastTheEndOfASmallLease", true,
            [](Liar& liar) {
              liar.hold(1);
              liar.post(1, kUnit / 4 - 4096, 4097);
            }},
        Lie{"PostsWithoutMemory", true, [](Liar& liar) { liar.say(record_of(RootKind::post, 1, 1), "x"); }},
        Lie{"PostsMoreThanItHas", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::post, 1, kUnit + 1), "x");
            }},
        Lie{"PostsNothing", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::post, 1, 0), "x");
            }},
        Lie{"PostsAFileWithoutAName", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::post, 1, 1));
            }},
        Lie{"PostsAFileWithHalfAName", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::post, 1, 1), std::string_view("a\0b", 3));
            }},
        Lie{"PostsOutOfOrder", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::post, 0, 1), "x");
            }},
        Lie{"PostsWithinAPage", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, 512, 100);
            }},
        Lie{"PostsBehindTheFirstUnit", true,
            [](Liar& liar) {
              liar.hold(3 * kUnit);
              liar.post(1, kUnit, 100);
            }},
        Lie{"PostsPastTheEnd", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, kUnit - 4096, 4097);
            }},
        Lie{"PostsAllThereIs", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, 4096, kHuge - 100);
            }},
        Lie{"PostsFarAway", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, kHuge - 4095, 4096);
            }},
        Lie{"PostsOnTopOfAnother", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, 8192, 4097);
              liar.post(2, 12288, 100);
            }},
        Lie{"PostsTheSameAgain", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.post(1, 0, 100);
              liar.post(2, 0, 100);
            }},
        Lie{"PostsWhereItHasLeft", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::leave));
              liar.post(1, 0, 100);
            }},
        Lie{"PostsMoreThanMayWait", true,
            [](Liar& liar) {
              liar.hold(3 * kUnit);
              for (std::uint64_t file = 0; file < 4; ++file) liar.post(file + 1, file * 4096, 4096);
            }},
        Lie{"PostsALargerFileThanAny", true,
            [](Liar& liar) {
              liar.hold(17 * kUnit);
              liar.post(1, 0, 16 * kUnit + 1);
            }},
        Lie{"NeedsMoreThanALeaseMayHave", true,
            [](Liar& liar) { liar.say(record_of(RootKind::need, 0, 17 * kUnit + 1)); }},
        Lie{"FinishesInMidFile", true,
            [](Liar& liar) {
              liar.hold(kUnit);
              liar.say(record_of(RootKind::finished));
            }},
        Lie{"SpeaksAfterItFinished", false,
            [](Liar& liar) {
              liar.greet();
              liar.say(record_of(RootKind::finished));
              liar.say(record_of(RootKind::need, 0, 1));
            }},
        Lie{"NeverListens", false,
            [](Liar& liar) {
              liar.greet();
              while (send(liar.frames, record_of(RootKind::need, 0, 1)).ok()) continue;
            },
            true}),
    [](const auto& lie) { return lie.param.name; });

TEST(HostileWorker, ThatLeavesWithoutAGreetingIsNotWorthAnEvent) {
  WindowServer server("wherry://*:*");
  {
    const Stream stranger = connect(server.local().to_string(), kStreamOptions);
  }
  WindowClient client(server.local().to_string());
  EXPECT_EQ(server.next(kTimeout)->kind, Event::Kind::joined);
}

RootRecord honest_welcome() {
  RootRecord welcome = record_of(RootKind::welcome, 16 * kUnit, kUnit);
  welcome.place = 10;
  return welcome;
}

/// A server that answers a client with what it likes.
class LyingServer {
 public:
  explicit LyingServer(std::function<void(FramedStream&)> lie, RootRecord welcome = honest_welcome())
      : listener_(listen("wherry://*:*", kStreamOptions)), thread_([this, lie = std::move(lie), welcome] {
          FramedStream frames(listener_.accept());
          EXPECT_EQ(answer(frames)->kind(), RootKind::hello);
          (void)send(frames, welcome);
          EXPECT_EQ(answer(frames)->kind(), RootKind::need);
          lie(frames);
          while (answer(frames)) continue;
        }) {}
  ~LyingServer() { thread_.join(); }

  void expect_refused() {
    WindowClient client(listener_.local().to_string());
    EXPECT_THROW(client.grow(kUnit), Error);
    EXPECT_THROW(client.grow(kUnit), Error);
  }

 private:
  Listener listener_;
  std::thread thread_;
};

TEST(HostileServer, WithSenselessLimitsIsNotBelieved) {
  const auto refused = [](std::uint64_t max_file, std::uint64_t unit, std::uint64_t files) {
    Listener listener = listen("wherry://*:*", kStreamOptions);
    std::thread server([&] {
      FramedStream frames(listener.accept());
      RootRecord welcome = record_of(RootKind::welcome, max_file, unit);
      welcome.place = files;
      (void)send(frames, welcome);
      while (answer(frames)) continue;
    });
    EXPECT_THROW(WindowClient(listener.local().to_string()), Error) << max_file << ' ' << unit << ' ' << files;
    server.join();
  };
  refused(16 * kUnit, 0, 10);
  refused(16 * kUnit, 1000, 10);
  refused(kUnit, 2 * kUnit, 10);
  refused(16 * kUnit, kUnit, 0);
  refused(kHuge, kUnit, 10);
}

TEST(HostileServer, ThatGrantsMemoryThatIsNotThereIsNotBelieved) {
  LyingServer([](FramedStream& frames) { (void)send(frames, record_of(RootKind::grant, 0, kUnit)); }).expect_refused();
}

TEST(HostileServer, ThatGrantsMoreThanItSaidIsNotBelieved) {
  LyingServer([](FramedStream& frames) { (void)send(frames, record_of(RootKind::grant, 0, kHuge)); }).expect_refused();
}

TEST(HostileServer, ThatGrantsLessThanWasNeededIsNotBelieved) {
  LyingServer([](FramedStream& frames) { (void)send(frames, record_of(RootKind::grant, 0, 0)); }).expect_refused();
}

TEST(HostileServer, ThatSpeaksAsAWorkerIsNotBelieved) {
  LyingServer([](FramedStream& frames) { (void)send(frames, record_of(RootKind::post, 1, 1)); }).expect_refused();
}

TEST(HostileServer, ThatSendsNoiseIsNotBelieved) {
  LyingServer([](FramedStream& frames) { (void)frames.send(std::span(kNoise).first(3)); }).expect_refused();
}

}  // namespace
}  // namespace wherry::root
