// SPDX-License-Identifier: Apache-2.0
// Messages of any length through sections of any size.
#include <cerrno>

#include "tests/conformance/mailbox_pair.hpp"

namespace wherry::conformance {
namespace {

using MailboxTransfer = MailboxTest;

TEST_P(MailboxTransfer, MessagesOfAllLengthsArriveWholeAndInOrder) {
  for (const std::size_t header : {64UL, 128UL, 192UL, 1024UL}) {
    Mailbox to = listening({.budget = header, .header = header});
    Mailbox from;
    const Mailbox::Peer peer = join(from, to);
    std::uint64_t position = 0;
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
      pass(from, peer, to, pattern_, bytes, position);
      position += bytes;
    }
    pass(from, peer, to, pattern_, 100'000, position);
  }
}

TEST_P(MailboxTransfer, BothSidesSendToEachOther) {
  Mailbox one = listening();
  Mailbox other = listening();
  const Mailbox::Peer to_other = join(one, other);
  pass(one, to_other, other, pattern_, 1000);
  const Mailbox::Peer to_one = other.connect(where(one));
  EXPECT_EQ(other.peers(), 1U);
  EXPECT_EQ(other.address_of(to_one), where(one).to_string());
  pass(other, to_one, one, pattern_, 1000, 77);
}

WHERRY_ON_EVERY_FABRIC(MailboxTransfer);

}  // namespace
}  // namespace wherry::conformance
