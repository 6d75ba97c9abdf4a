// SPDX-License-Identifier: Apache-2.0
// Windows between processes: the peer's program does nothing, is killed, forks.
#include <sys/wait.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/conformance/child_process.hpp"
#include "tests/conformance/window_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kBytes = 64 * kPage;

class WindowProcess : public WindowTest {
 protected:
  /// A child that connects, registers memory at offset 0, fills it, and plays on.
  template <class Play>
  std::unique_ptr<ChildProcess> child(Play play) {
    return std::make_unique<ChildProcess>(there([this, play] {
      const auto connecting = tested().connect(listener_->local(), kWindowOffer);
      const auto connection = finish(*connecting);
      Space space(*connection, kSpacePlace);
      CallersPages pages(kBytes);
      fill(pages.bytes(), 1);
      registered(space, pages.bytes(), kReadWrite, 0);
      play(*connection, space, pages.bytes());
    }));
  }

  /// Waits until the child's window is there.
  void accept_child() {
    connection_ = accept(*listener_, kWindowOffer);
    space_.emplace(*connection_, kSpacePlace);
    std::vector<std::byte> byte(1);
    ASSERT_EQ(once_registered([&] { return space_->read_from(byte, 0); }), 0);
  }

  /// Repeats the access until the peer has registered the memory. The peer learns of each attempt, so there are pauses.
  template <class Access>
  static int once_registered(Access access) {
    int error = access();
    for (; error == ENXIO; error = access()) std::this_thread::sleep_for(1ms);
    return error;
  }

  std::unique_ptr<fabric::Listener> listener_ = listen();
  std::unique_ptr<Connection> connection_;
  std::optional<Space> space_;
};

TEST_P(WindowProcess, APeerThatIsStoppedIsReachedAllTheSame) {
  if (GetParam().between_hosts) GTEST_SKIP() << "the stopped process's fabric would have to answer";
  const auto peer = child([](Connection&, Space&, std::span<std::byte>) { ::raise(SIGSTOP); });
  accept_child();
  int status = 0;
  ASSERT_EQ(::waitpid(peer->pid(), &status, WUNTRACED), peer->pid());
  std::vector<std::byte> own(kBytes);
  ASSERT_EQ(space_->read_from(own, 0), 0);
  EXPECT_TRUE(filled(own, 1));
  fill(own, 2);
  ASSERT_EQ(space_->write_to(own, 0, {.complete = true}), 0);
  ASSERT_EQ(space_->signal(true, {}, window::Signal{.offset = 0, .value = 3}), 0);
  std::vector<std::byte> back(kBytes);
  ASSERT_EQ(space_->read_from(back, 0), 0);
  EXPECT_EQ(std::memcmp(back.data() + 8, own.data() + 8, kBytes - 8), 0);
}

TEST_P(WindowProcess, AKilledPeerIsAnErrorAndItsMappingsStay) {
  const auto peer = child([](Connection&, Space&, std::span<std::byte>) { ::pause(); });
  accept_child();
  const auto mapped = space_->map(nullptr, 0, kBytes, kReadWrite);
  peer->kill();
  std::vector<std::byte> own(kBytes);
  EXPECT_EQ(space_->read_from(own, 0), ECONNRESET);
  EXPECT_EQ(space_->write_to(own, 0), ECONNRESET);
  EXPECT_EQ(space_->map(nullptr, 0, kBytes, kReadWrite).error, ECONNRESET);
  EXPECT_EQ(space_->register_memory(own, {}, kReadWrite).error, ECONNRESET);
  if (!GetParam().maps) return;
  ASSERT_EQ(mapped.error, 0);
  EXPECT_TRUE(filled({mapped.start, kBytes}, 1));
  ::munmap(mapped.start, kBytes);
}

TEST_P(WindowProcess, APeerKilledInMidRmaLeavesThisSideWhole) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    CallersPages target(kBytes);
    const auto peer = child([](Connection&, Space& space, std::span<std::byte> pages) {
      if (once_registered([&] { return space.write_to(pages, kBytes); }) != 0) return;
      while (space.write_to(pages, kBytes) != ECONNRESET) {
        if (space.read_from(pages, kBytes) == ECONNRESET) break;
      }
    });
    accept_child();
    registered(*space_, target.bytes(), kReadWrite, kBytes);
    while (space_->mark(true).calls < 10) dawdle(random());
    for (std::uint64_t i = random() % 100; i > 0; --i) dawdle(random());
    peer->kill();
    const int error = space_->wait(space_->mark(true));
    EXPECT_TRUE(error == 0 || error == ECONNRESET) << error;
    if (GetParam().between_hosts) wait_for_end(*connection_);  // news of a death takes a moment
    std::vector<std::byte> own(kBytes);
    EXPECT_EQ(space_->write_to(own, 0), ECONNRESET);
    EXPECT_EQ(space_->unregister(kBytes, kBytes), 0);
    fill(target.bytes(), 5);
    EXPECT_TRUE(filled(target.bytes(), 5)) << "the memory is the owner's, whole";
    space_.reset();
    connection_.reset();
  }
}

TEST_P(WindowProcess, WhatAPeerHasMappedStaysWhenItsOwnerFreesItAndMuchElse) {
  if (!GetParam().maps) GTEST_SKIP() << "no map";
  CallersPages flag(kPage);
  const auto peer = child([](Connection&, Space& space, std::span<std::byte> pages) {
    const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(pages.data());
    while (word.load(std::memory_order_acquire) != 42) dawdle(1);
    EXPECT_EQ(space.unregister(0, kBytes), 0);
    ::munmap(pages.data(), pages.size());
    for (int i = 0; i < 100; ++i) {
      CallersPages other(std::size_t{2} << 20);
      EXPECT_EQ(space.unregister(registered(space, other.bytes()), other.bytes().size()), 0);
    }
    space.signal(false, {}, window::Signal{.offset = kBytes, .value = HasFailure() ? 2U : 1U});
    ::pause();
  });
  accept_child();
  registered(*space_, flag.bytes(), kReadWrite, kBytes);
  const auto mapped = space_->map(nullptr, 0, kBytes, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  std::vector<std::byte> before(mapped.start, mapped.start + kBytes);
  ASSERT_EQ(space_->signal(false, {}, window::Signal{.offset = 0, .value = 42}), 0);
  const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(flag.bytes().data());
  while (word.load(std::memory_order_acquire) == 0) {
    ASSERT_FALSE(connection_->peer_gone());
    dawdle(1);
  }
  EXPECT_EQ(word, 1U) << "what the other process saw";
  EXPECT_EQ(std::memcmp(mapped.start + 8, before.data() + 8, kBytes - 8), 0);
  ::munmap(mapped.start, kBytes);
}

TEST_P(WindowProcess, AChildOfTheOwnerHasMemoryOfItsOwn) {
  const auto peer = child([](Connection&, Space& space, std::span<std::byte> pages) {
    ChildProcess forked([&] {
      EXPECT_TRUE(filled(pages, 1)) << "a copy, as of any memory";
      fill(pages, 7);
      EXPECT_TRUE(filled(pages, 7));
      CallersPages own(kPage);
      EXPECT_NE(space.register_memory(own.bytes(), {}, kReadWrite).error, 0) << "its arena is not the one the peer has";
    });
    EXPECT_EQ(forked.exit_status(), 0);
    EXPECT_TRUE(filled(pages, 1)) << "what the child wrote is the child's";
    fill(pages, 8);
    const window::Signal seen{.offset = kBytes, .value = HasFailure() ? 2U : 1U};
    once_registered([&] { return space.signal(false, {}, seen); });
    ::pause();
  });
  CallersPages flag(kPage);
  connection_ = accept(*listener_, kWindowOffer);
  space_.emplace(*connection_, kSpacePlace);
  registered(*space_, flag.bytes(), kReadWrite, kBytes);
  const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(flag.bytes().data());
  while (word.load(std::memory_order_acquire) == 0) {
    ASSERT_FALSE(connection_->peer_gone());
    dawdle(1);
  }
  EXPECT_EQ(word, 1U) << "what the other process saw";
  std::vector<std::byte> own(kBytes);
  ASSERT_EQ(space_->read_from(own, 0), 0);
  EXPECT_TRUE(filled(own, 8)) << "the owner's window goes on";
}

WHERRY_ON_PROCESS_FABRICS(WindowProcess);

}  // namespace
}  // namespace wherry::conformance
