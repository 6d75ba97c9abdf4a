// SPDX-License-Identifier: Apache-2.0
// Large transfers that both processes copy at once: killed at any moment of it, refused by the kernel at any moment of
// it, and with other processes than those that the kernel's credentials name.
#include <sys/uio.h>

#include <cerrno>
#include <random>
#include <thread>

#include "tests/common/seccomp.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kMessage = std::size_t{3} << 20;

/// From now on the kernel refuses all threads of this process to reach other processes' memory.
bool refuse_private_memory() { return refuse({SYS_process_vm_readv, SYS_process_vm_writev}); }

/// Whether two processes of this user may reach each other here, neither of which started the other.
bool kernel_allows() {
  const pid_t parent = ::getpid();
  Child child([parent] {
    std::uint64_t value = 0;
    const iovec here{&value, sizeof value}, there{&value, sizeof value};
    return ::process_vm_readv(parent, &here, 1, &there, 1, 0) == sizeof value;
  });
  return child.wait() == 0;
}

class Split : public FaultTest {
 protected:
  /// Sends the pattern in messages without end; says how far it got.
  Result send_for_ever(Stream& stream) {
    std::uint64_t sent = 0;
    while (true) {
      const Result result = stream.send(pattern_.bytes(kMessage, sent));
      sent += result.bytes;
      if (!result.ok()) return result;
      scene_->accepted_bytes = sent;
      scene_->ready = true;
    }
  }
  /// Receives the pattern until something happens. `all`: whole messages. `late`: so late that the sender offers.
  Result receive_to_the_last(Stream& stream, bool all, std::uint64_t& received, bool late = false) {
    std::vector<std::byte> buffer(kMessage);
    std::mt19937_64 random(received);
    while (true) {
      if (late) std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
      const Result result = all ? stream.receive_all(buffer) : stream.receive(buffer);
      EXPECT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes), received)) << "at " << received;
      // What a failed receive moved is not looked at: most programs do not.
      if (all || result.ok()) received += result.bytes;
      if (!result.ok()) return result;
      if (received > kMessage) scene_->ready = true;
    }
  }

  bool send_messages(Stream& stream, int count) {
    for (int i = 0; i < count; ++i) {
      if (!stream.send(pattern_.bytes(kMessage, static_cast<std::uint64_t>(i) * kMessage)).ok()) return false;
    }
    return true;
  }
  bool receive_messages(Stream& stream, int count) {
    std::vector<std::byte> buffer(kMessage);
    for (int i = 0; i < count; ++i) {
      if (!stream.receive_all(buffer).ok()) return false;
      if (!pattern_.matches(buffer, static_cast<std::uint64_t>(i) * kMessage)) return false;
    }
    return true;
  }
};

/// Half of the rounds with a late receiver, so that an offer stands most of the time, or has just been taken.
TEST_F(Split, ASenderKilledInMidTransferEndsInAResetAfterAllThatItsSendsAccepted) {
  std::mt19937_64 random(1);
  std::uint64_t split = 0;
  for (int round = 0; round < 60; ++round) {
    reset_scene();
    Listener listener = listen(address(), {.ring_bytes = round % 3 == 0 ? 4096U : 1U << 18});
    const Child victim([&] {
      Stream stream = connect(listener.local().to_string(), {}, kTimeout);
      return send_for_ever(stream).ok();
    });
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 4000));
    std::uint64_t received = 0;
    const Result last = receive_to_the_last(stream, round % 4 != 1, received, round % 4 >= 2);
    noticed();
    EXPECT_EQ(last.error, ECONNRESET) << "round " << round;
    EXPECT_GE(received, scene_->accepted_bytes) << "round " << round;
    split += stream.counters().bytes_received_split;
  }
  if (kernel_allows()) {
    EXPECT_GT(split, 0U);
  }
}

TEST_F(Split, AReceiverKilledInMidTransferIsABrokenPipe) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    reset_scene();
    Listener listener = listen(address());
    const Child victim([&] {
      Stream stream =
          connect(listener.local().to_string(), {.ring_bytes = round % 3 == 0 ? 4096U : 1U << 18}, kTimeout);
      std::uint64_t received = 0;
      return receive_to_the_last(stream, round % 4 != 1, received, round % 4 >= 2).ok();
    });
    Stream stream = listener.accept(kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 4000));
    Result last = Result::moved(0);
    for (std::uint64_t sent = 0; last.ok(); sent += last.bytes) last = stream.send(pattern_.bytes(kMessage, sent));
    noticed();
    EXPECT_EQ(last.error, EPIPE) << "round " << round;
    EXPECT_LT(last.bytes, kMessage);
  }
}

/// One process sends, a forked one receives, or the other way round; the forked one is refused after some messages. No
/// ring has room for one of them: while the receiver gets no processor the sender would put all of them there.
TEST_F(Split, WhereTheKernelRefusesAllBytesGoOverTheRing) {
  constexpr int kMessages = 12;
  constexpr StreamOptions kSmallRing{.ring_bytes = std::size_t{64} << 10};
  const bool allowed = kernel_allows();
  for (const bool child_sends : {false, true}) {
    for (const int refused_after : {0, 5}) {
      Listener listener = listen(address(), kSmallRing);
      Child child([&] {
        if (refused_after == 0 && !refuse_private_memory()) return false;
        Stream stream = connect(listener.local().to_string(), kSmallRing, kTimeout);
        const auto go_on = [&](int count) {
          return child_sends ? send_messages(stream, count) : receive_messages(stream, count);
        };
        if (refused_after != 0 && (!go_on(refused_after) || !refuse_private_memory())) return false;
        return go_on(kMessages - refused_after);
      });
      Stream stream = listener.accept(kTimeout);
      const auto go_on = [&](int count) {
        return child_sends ? receive_messages(stream, count) : send_messages(stream, count);
      };
      EXPECT_TRUE((refused_after == 0 || go_on(refused_after)) && go_on(kMessages - refused_after));
      EXPECT_EQ(child.wait(), 0);
      const StreamCounters counters = stream.counters();
      const std::uint64_t split = child_sends ? counters.bytes_received_split : counters.bytes_sent_split;
      // A transfer of which the other side took every piece first does not meet the refusal.
      EXPECT_EQ(split != 0, allowed && refused_after != 0);
    }
  }
}

/// While messages flow, at any moment of one.
TEST_F(Split, ARefusalInMidTransferCostsNoByte) {
  constexpr int kMessages = 15;
  for (int round = 0; round < 6; ++round) {
    const bool child_sends = round % 2 == 0;
    Listener listener = listen(address());
    Child child([&] {
      Stream stream = connect(listener.local().to_string(), {}, kTimeout);
      std::thread refuser([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(800 * round));
        (void)refuse_private_memory();
      });
      const bool done = child_sends ? send_messages(stream, kMessages) : receive_messages(stream, kMessages);
      refuser.join();
      return done;
    });
    Stream stream = listener.accept(kTimeout);
    EXPECT_TRUE(child_sends ? receive_messages(stream, kMessages) : send_messages(stream, kMessages));
    EXPECT_EQ(child.wait(), 0);
  }
}

/// The kernel vouches for the process that called listen: here the parent, while its child accepts.
TEST_F(Split, WhoAcceptsOnAnInheritedListenerIsNotTakenForWhoListens) {
  Listener listener = listen(address());
  {
    const Connecting connecting = start_connect(listener.local().to_string());
    (void)listener.accept(kTimeout);  // The parent has shown itself to a peer, as servers have.
  }
  Child acceptor([&] {
    Stream stream = listener.accept(kTimeout);
    return receive_messages(stream, 5);
  });
  Child connector([&] {
    Stream stream = connect(listener.local().to_string(), {}, kTimeout);
    return send_messages(stream, 5) && stream.counters().bytes_sent_split == 0;
  });
  EXPECT_EQ(connector.wait(), 0);
  EXPECT_EQ(acceptor.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
