// SPDX-License-Identifier: Apache-2.0
// A hostile process at the other end: it shakes hands as it should, then writes random values over every page it was
// given and rings every bell, as fast as it can, while this side works. tests/fuzz/ does the same with known moments.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "stream/handshake.hpp"
#include "tests/common/hostile_peer.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kCapacity = 4096;

/// What of the victim's memory is written over.
enum class Target : std::uint8_t { words, everything, nothing_but_bells };

class Scribbler {
 public:
  Scribbler(std::byte* segment, Target target, std::uint64_t seed)
      : pages_(reinterpret_cast<layout::Word*>(segment - layout::kBellPageBytes)), target_(target), random_(seed) {
    find_bells();
  }

  [[noreturn]] void run() {
    for (std::uint64_t turn = 0;; ++turn) {
      if (target_ != Target::nothing_but_bells) write_somewhere();
      if (turn % 64 == 0) ring();
    }
  }

 private:
  static constexpr std::size_t kWordsPerPage = 4096 / sizeof(layout::Word);

  void write_somewhere() {
    // A bell page, a stream page, a ring: the words that mean something are in the first lines of the first two.
    const std::size_t words = target_ == Target::words ? 24 : kWordsPerPage;
    const std::size_t page = random_() % (target_ == Target::words ? 2 : 3);
    spoil(pages_[page * kWordsPerPage + random_() % words], random_, 2 * kCapacity);
  }

  /// Every connected socket it holds: on two of them it rings the victim's bells.
  void find_bells() {
    for (int fd = 3; fd < 2000; ++fd) {
      sockaddr_un peer{};
      socklen_t length = sizeof peer;
      if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) bells_.push_back(fd);
    }
  }
  void ring() {
    for (const int bell : bells_) (void)::send(bell, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  layout::Word* pages_;
  Target target_;
  std::mt19937_64 random_;
  std::vector<int> bells_;
};

class Hostile : public FaultTest {
 protected:
  [[nodiscard]] static Child hostile_peer(const Listener& listener, Target target, std::uint64_t seed) {
    return Child([=, where = listener.local()]() -> bool {
      const auto connection = shake_hands(where, stream::offer_of({.own = kCapacity}));
      Scribbler(connection->map(), target, seed).run();
    });
  }

  /// What a program does; each call comes back, with what is allowed.
  static void work(Stream& stream, std::mt19937_64& random) {
    std::vector<std::byte> buffer(3 * kCapacity);
    const auto size = static_cast<std::size_t>(random() % buffer.size());
    const iovec pieces[] = {{buffer.data(), size / 3}, {buffer.data(), size}};
    Result result;
    switch (random() % 8) {
      case 0:
        result = stream.send(std::span(buffer).first(size), 1ms);
        break;
      case 1:
        result = stream.try_send(pieces);
        break;
      case 2:
        result = stream.receive(buffer, 1ms);
        break;
      case 3:
        result = stream.try_receive(buffer);
        break;
      case 4:
        result = stream.commit(stream.reserve(size).size());
        break;
      case 5:
        result = stream.consume(stream.peek(size).size());
        break;
      case 6:
        result = stream.wait_readable(1ms);
        break;
      default:
        result = stream.wait_writable(size, 1ms);
        break;
    }
    ASSERT_LE(result.bytes, size / 3 + buffer.size());
    if (!result.failed()) return;
    const bool known =
        result.error == EPROTO || result.error == EPIPE || result.error == ECONNRESET || result.error == ETIMEDOUT;
    EXPECT_TRUE(known) << result.error;
  }
};

TEST_F(Hostile, APeerThatWritesOverEverythingEndsInAnErrorOrGoesOn) {
  std::mt19937_64 random(9);
  for (std::uint64_t round = 0; round < 30; ++round) {
    const Target target = round % 2 == 0 ? Target::words : Target::everything;
    Listener listener = listen(address(), {.ring_bytes = kCapacity});
    Child peer = hostile_peer(listener, target, round);
    Stream stream = listener.accept(kTimeout);
    if (round % 3 == 0) {
      (void)stream.receive_descriptor();
      (void)stream.send_descriptor();
    }
    for (int call = 0; call < 300; ++call) work(stream, random);
    peer.kill();
    peer.wait();
    // Whatever it left in the words, receiving comes to an end.
    std::vector<std::byte> buffer(kCapacity);
    Result result = stream.receive(buffer, kTimeout);
    for (int calls = 0; result.ok() && calls < 10'000; ++calls) result = stream.receive(buffer, kTimeout);
    EXPECT_TRUE(result.ended() || result.error == EPROTO || result.error == ECONNRESET) << result.error;
  }
}

TEST_F(Hostile, BellsThatRingWithoutEndDoNotOutlastATimeout) {
  Listener listener = listen(address(), {.ring_bytes = kCapacity});
  const Child peer = hostile_peer(listener, Target::nothing_but_bells, 1);
  Stream stream = listener.accept(kTimeout);
  std::vector<std::byte> buffer(2 * kCapacity);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(stream.receive(buffer, 5ms).error, ETIMEDOUT);
    EXPECT_EQ(stream.send(buffer, 5ms).error, ETIMEDOUT);
  }
}

TEST_F(Hostile, OtherPeersOfTheSameProcessNoticeNothing) {
  Listener listener = listen(address(), {.ring_bytes = kCapacity});
  const Child peer = hostile_peer(listener, Target::everything, 2);
  Stream attacked = listener.accept(kTimeout);
  const Child honest([&] {
    Stream stream = connect(listener.local().to_string(), {}, kTimeout);
    return stream.send(pattern_.bytes(200'000), kTimeout).ok();
  });
  Stream stream = listener.accept(kTimeout);
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) work(attacked, random);
  std::uint64_t received = 0;
  EXPECT_TRUE(receive_to_the_last(stream, pattern_, received).ended());
  EXPECT_EQ(received, 200'000U);
}

}  // namespace
}  // namespace wherry::fault
