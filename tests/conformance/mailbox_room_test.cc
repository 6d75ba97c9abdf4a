// SPDX-License-Identifier: Apache-2.0
// Room for a sender that found none, as wait() and writable() report it.
#include <span>
#include <vector>

#include "tests/conformance/mailbox_pair.hpp"

namespace wherry::conformance {
namespace {

class MailboxRoom : public MailboxTest {
 protected:
  /// Sends short messages until there is no room. Returns how many.
  [[nodiscard]] std::size_t fill(Mailbox& from, Mailbox::Peer to) const {
    const auto message = pattern_.bytes(100);
    std::size_t sent = 0;
    while (from.try_send(to, message).ok()) ++sent;
    return sent;
  }
  /// Reads that many messages, however late they come.
  static void read(Mailbox& to, std::size_t messages) {
    drive({&to}, [&] {
      Mailbox::Piece piece;
      while (messages > 0 && to.try_peek(piece).ok()) {
        if (piece.offset + piece.bytes.size() == piece.message_bytes) --messages;
        to.consume(piece, piece.bytes.size());
      }
      return messages == 0;
    });
  }
  static void read_what_is_there(Mailbox& to) {
    Mailbox::Piece piece;
    while (to.try_peek(piece).ok()) to.consume(piece, piece.bytes.size());
  }
  /// Waits until `peer` is reported.
  static void expect_writable(Mailbox& from, Mailbox::Peer peer) {
    ASSERT_TRUE(from.wait(kTimeout));
    Mailbox::Peer writable = Mailbox::kNoPeer;
    ASSERT_EQ(from.writable(std::span(&writable, 1)), 1U);
    EXPECT_EQ(writable, peer);
  }
};

TEST_P(MailboxRoom, IsReportedOnceThePeerHasLetIn) {
  Mailbox to = listening();
  Mailbox from;
  const Mailbox::Peer peer = from.connect(where(to));
  EXPECT_EQ(from.room(peer, 8), 0U);
  Mailbox::Peer writable = Mailbox::kNoPeer;
  drive({&from, &to}, [&] { return from.writable(std::span(&writable, 1)) == 1; });
  EXPECT_EQ(writable, peer);
  EXPECT_GE(from.room(peer, 8), 8U);
}

TEST_P(MailboxRoom, IsReportedAgainThoughTheFirstReportWasNotTaken) {
  Mailbox to = listening({.layout = Layout::equal});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  read(to, fill(from, peer));
  ASSERT_TRUE(from.wait(kTimeout));
  read(to, fill(from, peer));
  Mailbox::Piece piece;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(from.try_peek(piece).would_block());
  expect_writable(from, peer);
}

TEST_P(MailboxRoom, ForTheRestOfAMessageIsReportedThoughAnotherWasAskedFor) {
  Mailbox to = listening({.layout = Layout::equal});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  const auto content = pattern_.bytes(std::size_t{1} << 20);
  const iovec all{const_cast<std::byte*>(content.data()), content.size()};
  Mailbox::Outgoing message{.pieces = std::span(&all, 1), .bytes = content.size()};
  while (from.try_send(peer, message).ok()) continue;
  ASSERT_LT(message.taken, message.bytes);
  EXPECT_EQ(from.room(peer, 8), 0U);
  Mailbox::Peer writable = Mailbox::kNoPeer;
  drive({&from, &to}, [&] {
    read_what_is_there(to);
    return from.writable(std::span(&writable, 1)) == 1;
  });
  EXPECT_EQ(writable, peer);
  EXPECT_TRUE(from.try_send(peer, message).ok());
}

TEST_P(MailboxRoom, IsWhatAMessageTakesThatGoesAtOnce) {
  Mailbox to = listening({.layout = Layout::equal});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  const std::size_t room = from.room(peer, 8);
  ASSERT_GE(room, 8U);
  const auto content = pattern_.bytes(room);
  const iovec all{const_cast<std::byte*>(content.data()), content.size()};
  Mailbox::Outgoing message{.pieces = std::span(&all, 1), .bytes = content.size()};
  EXPECT_EQ(from.try_send_whole(peer, message).bytes, room);
  Mailbox::Peer sender = Mailbox::kNoPeer;
  EXPECT_EQ(receive(to, sender, {&from}), content);
}

WHERRY_ON_EVERY_FABRIC(MailboxRoom);

}  // namespace
}  // namespace wherry::conformance
