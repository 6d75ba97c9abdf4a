// SPDX-License-Identifier: Apache-2.0
// What errors say of calls that are wrong by themselves, each made: the text says what to do instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/config.hpp"
#include "base/scoped_environment.hpp"
#include "fabric/fabric.hpp"
#include "memory/arena.hpp"
#include "memory/shared_memory.hpp"
#include "message/handshake.hpp"
#include "stream/handshake.hpp"
#include "tests/fault/error_text.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

/// Where nothing is mapped.
std::byte* nowhere() {
  return reinterpret_cast<std::byte*>(kPage);  // NOLINT(performance-no-int-to-ptr): as bad programs make it
}

struct Case {
  const char* text;
  std::function<void()> call;
};

void expect_texts(const std::vector<Case>& cases) {
  for (const Case& wrong : cases) EXPECT_THAT(text_of(wrong.call), HasSubstr(wrong.text));
}

fabric::Fabric& shm() { return fabric::find("shm"); }
Address any() { return Address::parse("wherry://*:*"); }

/// Two ends of a connection of the shm fabric's.
struct Pair {
  explicit Pair(const fabric::Offer& offer) {
    const auto listener = shm().listen(any());
    const auto connecting = shm().connect(listener->local(), offer);
    acceptor = listener->try_accept(offer);
    connector = connecting->try_finish();
  }
  std::unique_ptr<fabric::Connection> acceptor, connector;
};

TEST(ErrorTextOfCalls, ConfigurationAndAddresses) {
  const ScopedEnvironment node("WHERRY_NODE", "0");
  const auto with_job = [] {
    const ScopedEnvironment job("WHERRY_JOB", "a/b");
    (void)listen("wherry+shm://*:*");
  };
  expect_texts(
      {{"use a number of bytes with an optional K, M, G or T, such as 1M", [] { config::parse_bytes("size", "x"); }},
       {"use 1 to 64 letters, digits, dots, underscores or hyphens", with_job},
       {"; listen on that node or *, or set WHERRY_NODE", [] { (void)listen("wherry+shm://7:*"); }},
       {"name the node and the port to connect to; * is for listening",
        [] { (void)start_connect("wherry+shm://*:1"); }},
       {"the fabrics built in are:", [] { (void)listen("wherry+none://*:*"); }}});
}

TEST(ErrorTextOfCalls, MemoryOfAConnection) {
  const auto listener = shm().listen(any());
  alignas(64) static std::byte memory[2 * kPage];
  const auto connect_with = [&](const fabric::Offer& offer) { (void)shm().connect(listener->local(), offer); };
  const auto with_unmapped_memory = [&] {
    void* gone = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::string text =
        text_of([&] { connect_with({.segment_bytes = kPage, .memory = static_cast<std::byte*>(gone)}); });
    ::munmap(gone, kPage);
    throw Error(0, text, "", "");
  };
  expect_texts({{"a segment has at least one page and at most ", [&] { connect_with({.segment_bytes = 1}); }},
                {"memory brought into a connection must start at a multiple of ",
                 [&] { connect_with({.segment_bytes = kPage, .memory = memory + 1}); }},
                {"memory brought into a connection cannot be a compact segment",
                 [&] { connect_with({.segment_bytes = kPage, .memory = nowhere(), .compact = true}); }},
                {"it must be readable, and the machine must have that much memory free", with_unmapped_memory}});
}

TEST(ErrorTextOfCalls, MemoryThatIsExposedOrShown) {
  Pair plain({.segment_bytes = kPage});
  const std::span<std::byte> odd(nowhere(), 1);
  const std::span<std::byte> missing(nowhere(), kPage);
  expect_texts({{"this connection was not made for it", [&] { (void)plain.acceptor->exposure()->expose(odd); }},
                {"it starts at a multiple of the page size and is whole pages",
                 [&] { (void)memory::Arena::instance().expose(odd); }},
                {"all of it must be mapped and readable", [&] { (void)memory::Arena::instance().expose(missing); }},
                {"its peers cannot map each other's memory; use one that can, such as shm, or a stream",
                 [] { (void)fabric::find("inproc-put").share(kPage); }},
                {"its size is a multiple of the page size, at most 1 TiB", [] { (void)shm().share(1); }}});
}

TEST(ErrorTextOfCalls, Streams) {
  Listener listener = listen("wherry+shm://*:*");
  Connecting connecting = start_connect(listener.local().to_string());
  Stream stream = listener.accept(kTimeout);
  Stream closed;
  Poller one, other;
  one.add(stream, 1);
  expect_texts(
      {{"send messages on a stream: Bad file descriptor; the stream is closed", [] { (void)FramedStream(Stream()); }},
       {"open the windows of a stream: Bad file descriptor; the stream is closed", [&] { (void)closed.windows(); }},
       {"both sides must ask for them when they listen and connect (StreamOptions::windows)",
        [&] { (void)stream.windows(); }},
       {"the stream is in a poller already; remove it there first", [&] { other.add(stream, 1); }}});
}

TEST(ErrorTextOfCalls, Windows) {
  const StreamOptions options{.ring_bytes = kPage, .windows = true};
  Listener listener = listen("wherry+shm://*:*", options);
  Connecting connecting = start_connect(listener.local().to_string(), options);
  Stream accepted = listener.accept(kTimeout);
  Stream connected = std::move(*connecting.try_finish());
  Windows ours = accepted.windows(), theirs = connected.windows();
  void* start = ::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::span memory(static_cast<std::byte*>(start), 4 * kPage);
  void* file = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const std::span shared(static_cast<std::byte*>(file), kPage);
  const std::uint64_t there = ours.add(memory.first(kPage), Access::read);
  const std::uint64_t mapped = ours.add(memory.subspan(kPage, kPage), Access::read_write, 1UL << 20);
  const MappedWindow mapping = theirs.map(mapped, kPage);
  (void)ours.remove(mapped, kPage);
  const std::uint64_t kept = ours.add(shared);
  const auto add_too_many = [&] {
    while (true) (void)ours.add(memory.first(kPage));
  };
  expect_texts(
      {{"the size and the offset of a window must be multiples of the page size",
        [&] { (void)ours.add(memory.first(1)); }},
       {"all of the memory must be mapped and readable", [&] { (void)ours.add({nowhere(), kPage}); }},
       {"the offset has a window already, or is not below 2^62; use another, or omit it to have one chosen",
        [&] { (void)ours.add(memory.first(kPage), Access::read, there); }},
       {"the peer still maps the window that was there; unmap it at the peer, or use another offset",
        [&] { (void)ours.add(memory.first(kPage), Access::read, mapped); }},
       {"the peer has not registered all of that range", [&] { (void)theirs.map(1UL << 40, kPage); }},
       {"the peer's window does not allow that access", [&] { (void)theirs.map(there, kPage); }},
       {"this memory cannot be mapped; use read_from and write_to instead", [&] { (void)theirs.map(kept, kPage); }},
       {"a side has up to 4096 windows; register larger ones, or raise vm.max_map_count", add_too_many}});
  connected.close();
  EXPECT_THAT(text_of([&] {
                while (true) (void)ours.map(there, kPage);
              }),
              HasSubstr("the peer has closed or died, or its process is stopped"));
  accepted.close();
  ::munmap(start, memory.size());
  ::munmap(file, shared.size());
}

/// The error of a publisher's or subscriber's that meets what listens here and answers `offer`.
template <class Joiner>
std::string met(const fabric::Offer& offer) {
  const auto listener = shm().listen(any());
  Joiner joiner;
  joiner.start_connect(listener->local().to_string());
  const auto accepted = listener->try_accept(offer);
  return text_of([&] { joiner.admit(1, kTimeout); });
}

TEST(ErrorTextOfCalls, PublishersAndSubscribersThatMeetWhatTheyDidNotLookFor) {
  const auto pool = shm().share(kPage);
  const fabric::Offer publisher = message::publishers_offer(pool);
  const fabric::Offer subscriber = message::subscribers_offer(16, Overflow::wait);
  EXPECT_THAT(met<Subscriber>(stream::offer_of({.own = kPage})),
              HasSubstr("this port has a stream; connect a stream to it, or use another port"));
  EXPECT_THAT(met<Subscriber>({.segment_bytes = kPage}),
              HasSubstr("the program at this port does not exchange Wherry messages; use another port"));
  EXPECT_THAT(met<Subscriber>(subscriber), HasSubstr("two subscribers met; connect one to a publisher"));
  EXPECT_THAT(met<Publisher>(publisher), HasSubstr("two publishers met; connect one to a subscriber"));
  for (const std::size_t at : {offsetof(layout::MessageGreeting, version), offsetof(layout::MessageGreeting, queue)}) {
    fabric::Offer wrong = publisher;
    wrong.greeting[at] = at == offsetof(layout::MessageGreeting, version) ? std::byte{99} : std::byte{1};
    if (at == offsetof(layout::MessageGreeting, queue))
      std::fill_n(wrong.greeting.begin() + static_cast<long>(at) + 1, 3, std::byte{});
    EXPECT_THAT(
        met<Subscriber>(wrong),
        HasSubstr(at == offsetof(layout::MessageGreeting, version)
                      ? "the peer does not exchange messages of this version of Wherry; use one version on both sides"
                      : "the publisher cannot hold the returns of a queue of this size; use a smaller queue"));
  }
}

TEST(ErrorTextOfCalls, PublishersAndSubscribers) {
  Subscriber subscriber, lonely;
  subscriber.listen("wherry+shm://*:*");
  const auto listener = shm().listen(any());
  const auto on_two_fabrics = [&] {
    Listener other = listen("wherry+inproc://*:*");
    subscriber.connect(other.local().to_string(), 0ms);
  };
  expect_texts({{"its queue has 1 to 65536 messages, not 0", [] { (void)Subscriber({.queue = 0}); }},
                {"; use another publisher or subscriber", [&] { subscriber.listen("wherry+shm://*:*"); }},
                {"no peer can connect: listen on an address or connect to one first", [&] { lonely.admit(1, 0ms); }},
                {"somebody listens there but did not accept in time; wait longer (WHERRY_CONNECT_TIMEOUT)",
                 [&] { lonely.connect(listener->local().to_string(), 0ms); }},
                {"; use one publisher or subscriber for each fabric", on_two_fabrics}});
}

TEST(ErrorTextOfCalls, HandlesThatHoldNothing) {
  expect_texts({
      {"this Listener holds no port: assign it what wherry::listen returns", [] { (void)Listener().accept(); }},
      {"this Connecting holds no attempt: assign it what wherry::start_connect returns",
       [] { (void)Connecting().try_finish(); }},
  });
}

TEST(ErrorTextOfCalls, AForkedChildThatRegistersOnItsParentsStream) {
  Listener listener = listen("wherry+shm://*:*", {.windows = true});
  Connecting connecting = start_connect(listener.local().to_string(), {.windows = true});
  const Stream acceptor = listener.accept(kTimeout);
  Stream stream = std::move(connecting.try_finish()).value();
  Windows windows = stream.windows();
  Child child([&] {
    alignas(kPage) static std::array<std::byte, kPage> memory;
    const std::string text = text_of([&] { (void)windows.add(memory, Access::read); });
    return text.find("this is a forked child's copy of the stream; connect one of its own") != std::string::npos;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
