// SPDX-License-Identifier: Apache-2.0
// Millions of messages from several processes through sections that change size all the time, from processes that
// doze at random moments: none lost, none twice, none altered, each sender's in order, no lost wake-up (the watchdog's
// to find).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include <wherry/mailbox.hpp>

#include "base/child_process.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/soak.hpp"
#include "tests/stress/options.hpp"

namespace wherry::stress {
namespace {

struct Case {
  const char* name;
  std::size_t senders;
  std::size_t budget;
  std::size_t header;
  std::size_t longest;  ///< message
  std::uint64_t share;  ///< this part of the operations: one in so many
  std::size_t overflow = 0;
};

/// In `make soak`: 10^8 in all cases together.
constexpr std::uint64_t kSoakMessages = 215'000'000;

struct Numbered {
  std::uint64_t sender;
  std::uint64_t number;
};

class MailboxStress : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static std::uint64_t each() {
    return (soaking() ? kSoakMessages : options().operations) / GetParam().share / GetParam().senders;
  }

  static void doze(std::mt19937_64& random) {
    const std::uint64_t die = random() % 4096;
    if (die == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    if (die < 8) std::this_thread::yield();
  }
  /// Both sides know how long a message is.
  static std::size_t length_of(const Numbered& message) {
    const std::uint64_t mixed = (message.number * 8 + message.sender) * 0x9e3779b97f4a7c15ULL;
    return sizeof message + (mixed >> 33) % (GetParam().longest - sizeof message + 1);
  }
  /// Waits for room without a timeout: a lost wake-up is the watchdog's to find.
  static bool send_whole(Mailbox& mailbox, Mailbox::Peer to, Mailbox::Outgoing& message) {
    while (true) {
      const Result result = mailbox.try_send_whole(to, message);
      if (!result.would_block()) return result.ok();
      std::array<Mailbox::Peer, 1> writable;
      while (mailbox.writable(writable) == 0) (void)mailbox.wait();
    }
  }
  bool send_all(const Address& where, std::uint64_t sender) const {
    std::mt19937_64 random(options().seed + sender);
    Mailbox mailbox;
    const Mailbox::Peer to = mailbox.connect(where);
    for (Numbered message{sender, 0}; message.number < each(); ++message.number) {
      const auto content = pattern_.in_place(length_of(message) - sizeof message, message.number);
      const std::array<iovec, 2> pieces{iovec{&message, sizeof message},
                                        iovec{const_cast<std::byte*>(content.data()), content.size()}};
      Mailbox::Outgoing outgoing{.pieces = pieces, .bytes = length_of(message)};
      const bool whole = GetParam().overflow != 0 && random() % 8 != 0;
      if (!(whole ? send_whole(mailbox, to, outgoing) : mailbox.send(to, outgoing).ok())) return false;
      doze(random);
    }
    return true;
  }
  static void change_layout(Mailbox& mailbox, std::mt19937_64& random) {
    std::vector<Mailbox::Neighbour> neighbours;
    for (std::uint32_t i = 0; i < GetParam().senders; ++i) {
      if (random() % 2 == 0) neighbours.push_back({i, static_cast<std::uint32_t>(1 + random() % 4)});
    }
    mailbox.set_neighbours(neighbours);
    mailbox.set_layout(static_cast<Layout>(random() % 3));
    mailbox.set_budget(GetParam().budget / (1 + random() % 3));
  }

  const Pattern pattern_{23};
};

TEST_P(MailboxStress, NothingIsLostAlteredOrReorderedWhileLayoutsChange) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(options().seed));
  Mailbox mailbox({.budget = GetParam().budget, .header = GetParam().header, .overflow = GetParam().overflow});
  mailbox.listen(Address::parse("wherry+shm://*:*"));
  std::deque<Child> children;
  for (std::uint64_t i = 0; i < GetParam().senders; ++i) {
    children.emplace_back([&, i, where = mailbox.local()] { return send_all(where, i); });
  }
  std::mt19937_64 random(options().seed);
  std::vector<std::uint64_t> next(GetParam().senders);
  std::vector<std::byte> buffer(GetParam().longest);
  std::array<Mailbox::Loss, 8> losses;
  std::uint64_t changes = 0;
  for (std::uint64_t left = each() * GetParam().senders; left > 0;) {
    Mailbox::Peer from = Mailbox::kNoPeer;
    if (mailbox.losses(losses) != 0) continue;
    const Result result = mailbox.receive(buffer, from);
    if (result.would_block()) continue;
    ASSERT_TRUE(result.ok()) << result;
    Numbered message{};
    ASSERT_GE(result.bytes, sizeof message);
    std::memcpy(&message, buffer.data(), sizeof message);
    ASSERT_LT(message.sender, next.size());
    ASSERT_EQ(message.number, next[message.sender]++);
    ASSERT_EQ(result.bytes, length_of(message));
    ASSERT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes).subspan(sizeof message), message.number));
    --left;
    changes = std::max(changes, mailbox.section(from).changes);
    if (random() % 256 == 0) change_layout(mailbox, random);
    doze(random);
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  EXPECT_GT(changes, 2U);
}

INSTANTIATE_TEST_SUITE_P(All, MailboxStress,
                         ::testing::Values(Case{"one_small", 1, 1024, 64, 200, 10},
                                           Case{"three_medium", 3, 16384, 128, 1500, 6},
                                           Case{"eight_small", 8, 4096, 64, 300, 10},
                                           Case{"two_overflowing", 2, 4096, 64, 1000, 10, 32768}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Two processes that sleep for each message, and send to each other.
TEST(MailboxSleep, NoWakeUpIsLostBetweenTwoThatSleep) {
  const std::uint64_t count = options().operations / 30;
  Mailbox mailbox;
  mailbox.listen(Address::parse("wherry+shm://*:*"));
  Child other([&, where = mailbox.local()] {
    Mailbox own;
    const Mailbox::Peer to = own.connect(where);
    std::uint64_t number = 0;
    Mailbox::Peer from = Mailbox::kNoPeer;
    for (std::uint64_t i = 0; i < count; ++i) {
      number = i;
      if (!own.send(to, std::as_bytes(std::span(&number, 1))).ok()) return false;
      if (!own.receive(std::as_writable_bytes(std::span(&number, 1)), from).ok() || number != i + 1) return false;
    }
    return true;
  });
  std::mt19937_64 random(options().seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t number = 0;
    Mailbox::Peer from = Mailbox::kNoPeer;
    const Result got = mailbox.receive(std::as_writable_bytes(std::span(&number, 1)), from);
    ASSERT_TRUE(got.ok()) << got;
    ASSERT_EQ(number++, i);
    if (random() % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    ASSERT_TRUE(mailbox.send(from, std::as_bytes(std::span(&number, 1))).ok());
  }
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace wherry::stress
