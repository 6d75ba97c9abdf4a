// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/mailbox_pair.hpp"

#include <stdexcept>

namespace wherry::conformance {

MailboxTest::MailboxTest() : faults_("WHERRY_FAULTS", std::string(GetParam().faults).c_str()) {}

Mailbox MailboxTest::listening(const MailboxOptions& options) const {
  Mailbox mailbox(options);
  mailbox.listen(address());
  return mailbox;
}

Address MailboxTest::where(const Mailbox& mailbox) {
  Address address = mailbox.local();
  address.fabric = GetParam().fabric;
  return address;
}

Mailbox::Peer MailboxTest::join(Mailbox& from, Mailbox& to) const {
  const Mailbox::Peer peer = from.connect(where(to));
  drive({&from, &to}, [&] { return from.section(peer).outgoing != 0; });
  return peer;
}

void pass(Mailbox& from, Mailbox::Peer to, Mailbox& into, const Pattern& pattern, std::size_t bytes,
          std::uint64_t position) {
  const auto content = pattern.bytes(bytes, position);
  const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
  Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = bytes};
  bool sent = false;
  std::uint64_t received = 0;
  bool whole = false;
  drive({&from, &into}, [&] {
    if (!sent) {
      const Result result = from.try_send(to, message);
      if (result.failed()) throw std::runtime_error("try_send failed: " + result.to_string());
      sent = result.ok() && message.taken == bytes;
    }
    Mailbox::Piece got;
    while (!whole && into.try_peek(got).ok()) {
      EXPECT_EQ(got.message_bytes, bytes);
      EXPECT_EQ(got.offset, received);
      EXPECT_TRUE(pattern.matches(got.bytes.first, position + received));
      EXPECT_TRUE(pattern.matches(got.bytes.second, position + received + got.bytes.first.size()));
      received += got.bytes.size();
      into.consume(got, got.bytes.size());
      whole = received == bytes;
    }
    return sent && whole;
  });
}

std::vector<std::byte> receive(Mailbox& into, Mailbox::Peer& from, std::initializer_list<Mailbox*> others) {
  std::vector<std::byte> message;
  bool whole = false;
  drive({&into}, [&] {
    for (Mailbox* other : others) other->progress();
    Mailbox::Piece piece;
    while (!whole && into.try_peek(piece).ok()) {
      from = piece.from;
      for (const auto& part : {piece.bytes.first, piece.bytes.second}) {
        message.insert(message.end(), part.begin(), part.end());
      }
      whole = piece.offset + piece.bytes.size() == piece.message_bytes;
      into.consume(piece, piece.bytes.size());
    }
    return whole;
  });
  return message;
}

}  // namespace wherry::conformance
