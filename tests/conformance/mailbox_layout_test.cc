// SPDX-License-Identifier: Apache-2.0
// Layouts that change while messages flow, and how a budget is divided.
#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

#include "tests/conformance/mailbox_pair.hpp"

namespace wherry::conformance {
namespace {

class MailboxLayout : public MailboxTest {
 protected:
  /// `count` mailboxes that have joined `to`.
  void join_all(Mailbox& to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      senders_.emplace_back();
      peers_.push_back(join(senders_.back(), to));
    }
  }
  /// What `to` knows sender i by: it sends its number.
  std::vector<Mailbox::Peer> introduce(Mailbox& to) {
    std::vector<Mailbox::Peer> known(senders_.size());
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      EXPECT_TRUE(senders_[i].send(peers_[i], std::as_bytes(std::span(&i, 1)), kTimeout).ok());
      Mailbox::Peer from = Mailbox::kNoPeer;
      (void)receive(to, from, {&senders_[i]});
      known[i] = from;
    }
    return known;
  }
  [[nodiscard]] std::size_t outgoing(std::size_t sender) const {
    return senders_[sender].section(peers_[sender]).outgoing;
  }
  template <class Done>
  void drive_all(Mailbox& to, Done&& done) {
    drive({&to}, [&] {
      for (Mailbox& sender : senders_) sender.progress();
      return done();
    });
  }

  /// Bytes of shared memory that this process has in its pages.
  static std::size_t shared_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssShmem:")) return std::stoul(line.substr(9)) << 10;
    }
    throw std::runtime_error("no RssShmem in /proc/self/status");
  }

  std::deque<Mailbox> senders_;
  std::vector<Mailbox::Peer> peers_;
};

TEST_P(MailboxLayout, EqualSharesTheBudgetAmongAll) {
  Mailbox to = listening({.budget = 6400, .header = 128, .layout = Layout::equal});
  join_all(to, 5);
  drive_all(to, [&] {
    for (std::size_t i = 0; i < 5; ++i) {
      if (outgoing(i) != 1280) return false;
    }
    return true;
  });
}

TEST_P(MailboxLayout, TopologyGivesNeighboursWhatTheHeadersLeaveByTheirWeights) {
  Mailbox to = listening({.budget = 64 * 100, .header = 128, .layout = Layout::topology});
  join_all(to, 5);
  const auto known = introduce(to);
  const std::array neighbours{Mailbox::Neighbour{known[1], 1}, Mailbox::Neighbour{known[3], 2}};
  to.set_neighbours(neighbours);
  drive_all(to, [&] {
    return outgoing(0) == 128 && outgoing(2) == 128 && outgoing(4) == 128 && outgoing(1) == 64 * 32 &&
           outgoing(3) == 64 * 62 && to.section(known[3]).incoming == 64 * 62;
  });
}

TEST_P(MailboxLayout, ASenderHasItsHeaderOnceItHasSent) {
  Mailbox to = listening({.budget = 64 * 100, .header = 192, .quiet = 64, .layout = Layout::topology});
  join_all(to, 5);
  const std::array neighbours{Mailbox::Neighbour{0, 1}, Mailbox::Neighbour{1, 1}};
  to.set_neighbours(neighbours);
  const auto sections = [&] {
    std::vector<std::size_t> all;
    for (Mailbox::Peer peer = 0; peer < 5; ++peer) all.push_back(to.section(peer).incoming / 64);
    return all;
  };
  drive_all(to, [&] { return sections() == std::vector<std::size_t>{48, 48, 1, 1, 1}; });
  const auto known = introduce(to);
  drive_all(to, [&] { return sections() == std::vector<std::size_t>{45, 45, 3, 3, 3}; });
  std::array<std::byte, 64> longer{};
  EXPECT_EQ(senders_[4].try_send(peers_[4], longer).error, EMSGSIZE);
  pass(senders_[4], peers_[4], to, pattern_, 100'000);
}

TEST_P(MailboxLayout, ALaneIsBeyondTheBudgetAndGoesBack) {
  Mailbox to = listening({.budget = 6400, .header = 128, .layout = Layout::equal, .lane = 64 << 10});
  join_all(to, 5);
  const auto known = introduce(to);
  const auto all_have = [&](std::size_t wide) {
    bool right = outgoing(0) == wide;
    for (std::size_t i = 1; i < 5; ++i) right &= outgoing(i) == 1280;
    return right;
  };
  drive_all(to, [&] { return all_have(1280); });
  for (int i = 0; i < 2; ++i) {
    to.widen(known[0], true);
    drive_all(to, [&] { return all_have(1280 + (64 << 10)); });
    pass(senders_[0], peers_[0], to, pattern_, 300'000);
    to.widen(known[0], false);
    pass(senders_[0], peers_[0], to, pattern_, 300'000);
    drive_all(to, [&] { return all_have(1280); });
  }
  to.widen(known[0], true);
  to.forget(known[0]);
  to.widen(known[0], true);
  drive_all(to, [&] { return outgoing(1) == 1600 && outgoing(4) == 1600; });
}

TEST_P(MailboxLayout, AdaptiveAndTopologyWithoutNeighboursGiveTheBudgetToThoseThatTalkWithinAThousandMessages) {
  for (const Layout layout : {Layout::adaptive, Layout::topology}) {
    senders_.clear();
    peers_.clear();
    Mailbox to = listening({.budget = 64 * 100, .header = 128, .layout = layout});
    join_all(to, 5);
    for (int i = 0; i < 500; ++i) {
      pass(senders_[1], peers_[1], to, pattern_, 1000);
      pass(senders_[2], peers_[2], to, pattern_, 1000);
    }
    drive_all(to, [&] { return outgoing(1) == 64 * 47 && outgoing(2) == 64 * 47; });
    EXPECT_EQ(outgoing(0), 128U);
  }
}

TEST_P(MailboxLayout, WithMoreThanAHundredSendersEqualGivesSectionsOnDemand) {
  if (GetParam().between_processes) GTEST_SKIP() << "too many descriptors for one process";
  Mailbox to = listening({.budget = 64 * 1000, .header = 64, .layout = Layout::equal});
  join_all(to, 120);
  drive_all(to, [&] { return to.peers() == 120 && outgoing(0) == 64 && outgoing(119) == 64; });
  for (int i = 0; i < 200; ++i) pass(senders_[7], peers_[7], to, pattern_, 100);
  drive_all(to, [&] { return outgoing(7) == 64 * 881; });
  EXPECT_EQ(outgoing(8), 64U);
}

TEST_P(MailboxLayout, NothingIsLostAlteredOrReorderedWhileLayoutsChange) {
  std::mt19937_64 random(3);
  Mailbox to = listening({.budget = 8192, .header = 64, .layout = Layout::topology});
  join_all(to, 3);
  const auto known = introduce(to);
  std::vector<std::uint64_t> sent(3), received(3);
  std::vector<std::vector<std::byte>> content(3);
  std::vector<iovec> pieces(3);
  std::vector<Mailbox::Outgoing> messages(3);
  std::vector<std::uint64_t> lengths;
  const std::uint64_t rounds = GetParam().rounds;
  const auto changes = [&] { return to.section(known[0]).changes; };
  for (std::uint64_t round = 0; round < rounds || changes() < 20; ++round) {
    if (random() % 8 == 0) {
      std::vector<Mailbox::Neighbour> neighbours;
      for (const auto peer : known) {
        if (random() % 2 == 0) neighbours.push_back({peer, static_cast<std::uint32_t>(1 + random() % 3)});
      }
      to.set_neighbours(neighbours);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (messages[i].taken == messages[i].bytes) {
        content[i] = pattern_.bytes(1 + random() % 500, sent[i]);
        pieces[i] = {content[i].data(), content[i].size()};
        messages[i] = {.pieces = std::span(&pieces[i], 1), .bytes = content[i].size()};
        sent[i] += content[i].size();
      }
      ASSERT_FALSE(senders_[i].try_send(peers_[i], messages[i]).failed());
      if (random() % 4 == 0) senders_[i].progress();
    }
    Mailbox::Piece piece;
    while (random() % 3 != 0 && to.try_peek(piece).ok()) {
      const std::size_t who =
          static_cast<std::size_t>(std::find(known.begin(), known.end(), piece.from) - known.begin());
      ASSERT_LT(who, 3U);
      const std::size_t n = random() % 2 == 0 ? piece.bytes.size() : 1 + random() % piece.bytes.size();
      const auto first = piece.bytes.first.first(std::min(n, piece.bytes.first.size()));
      ASSERT_TRUE(pattern_.matches(first, received[who]));
      ASSERT_TRUE(pattern_.matches(piece.bytes.second.first(n - first.size()), received[who] + first.size()));
      received[who] += n;
      to.consume(piece, n);
    }
    to.progress();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(received[i], 0U);
}

TEST_P(MailboxLayout, ABudgetMayShrinkAndTheSectionsFollow) {
  Mailbox to = listening({.budget = 1 << 20, .layout = Layout::equal});
  join_all(to, 2);
  drive_all(to, [&] { return outgoing(0) == 1 << 19 && outgoing(1) == 1 << 19; });
  pass(senders_[0], peers_[0], to, pattern_, 1 << 19);
  to.set_budget(4096);
  drive_all(to, [&] { return outgoing(0) == 2048 && outgoing(1) == 2048; });
  pass(senders_[0], peers_[0], to, pattern_, 100'000);
  to.set_budget(1 << 20);
  drive_all(to, [&] { return outgoing(0) == 1 << 19; });
  pass(senders_[0], peers_[0], to, pattern_, 1 << 19);
}

TEST_P(MailboxLayout, PagesThatASectionNoLongerReachesGoBackToTheSystem) {
  if (!GetParam().between_processes) GTEST_SKIP() << "only memory that processes share has pages to give back";
  constexpr std::size_t kSection = 16 << 20;
  for (const std::size_t overflow : {std::size_t{0}, std::size_t{65536}}) {
    Mailbox to = listening({.budget = kSection, .layout = Layout::equal, .overflow = overflow});
    join_all(to, 1);
    const auto known = introduce(to);
    drive_all(to, [&] { return outgoing(0) == kSection; });
    pass(senders_[0], peers_[0], to, pattern_, 2 * kSection);
    const std::size_t before = shared_bytes();
    to.set_budget(4096);
    drive_all(to, [&] { return to.section(known[0]).incoming == 4096; });
    EXPECT_LT(shared_bytes() + kSection - 65536, before) << "with an overflow of " << overflow;
    pass(senders_[0], peers_[0], to, pattern_, 100'000);
    senders_.clear();
    peers_.clear();
  }
}

TEST_P(MailboxLayout, ASectionWhoseMessagesAreReadOneByOneKeepsToItsFirstPages) {
  if (!GetParam().maps || !GetParam().between_processes) GTEST_SKIP() << "only there are pages to be spared";
  constexpr std::size_t kSection = 1 << 20;
  Mailbox to = listening({.budget = kSection, .layout = Layout::equal});
  Mailbox from = listening();
  const Mailbox::Peer to_it = join(from, to);
  drive({&to, &from}, [&] { return from.section(to_it).outgoing == kSection; });
  pass(from, to_it, to, pattern_, 1000);
  const Mailbox::Peer back = to.connect(where(from));
  const std::size_t before = shared_bytes();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    pass(from, to_it, to, pattern_, 1000, i);
    pass(to, back, from, pattern_, 8, i);  // with which `from` learns what was read
  }
  EXPECT_LT(shared_bytes(), before + 65536);
}

TEST_P(MailboxLayout, ALostPeersShareGoesToTheOthers) {
  Mailbox to = listening({.budget = 8192, .layout = Layout::equal});
  join_all(to, 2);
  drive_all(to, [&] { return outgoing(0) == 4096 && outgoing(1) == 4096; });
  senders_.pop_back();
  drive_all(to, [&] { return outgoing(0) == 8192; });
}

WHERRY_ON_EVERY_FABRIC(MailboxLayout);

}  // namespace
}  // namespace wherry::conformance
