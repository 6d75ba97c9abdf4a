// SPDX-License-Identifier: Apache-2.0
// What the tests of early data share: messages that are sent before their receiver has let the sender in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <wherry/mailbox.hpp>

#include "tests/fault/fault.hpp"

namespace wherry::fault {

inline constexpr std::size_t kOverflow = std::size_t{320} << 10;
inline constexpr std::size_t kLongest = 5000;

inline MailboxOptions options() { return {.budget = 4096, .layout = Layout::equal, .overflow = kOverflow}; }

class MailboxEarly : public FaultTest {
 protected:
  static Mailbox listening() {
    Mailbox mailbox(options());
    mailbox.listen(Address::parse(address()));
    return mailbox;
  }
  [[nodiscard]] static std::size_t length(std::uint64_t number) { return number * 37 % kLongest; }
  /// The message of this number, as a whole or not at all.
  [[nodiscard]] bool send(Mailbox& from, Mailbox::Peer to, std::uint64_t number) const {
    const auto content = pattern_.bytes(length(number), number);
    const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
    Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = content.size()};
    return from.try_send_whole(to, message).ok();
  }
  /// The next message that there is, which must be that of this number.
  [[nodiscard]] bool receive(Mailbox& to, std::uint64_t number) const {
    std::vector<std::byte> buffer(kLongest);
    Mailbox::Peer from = Mailbox::kNoPeer;
    const Result result = to.receive(buffer, from, kTimeout);
    EXPECT_TRUE(result.ok()) << result.to_string();
    EXPECT_EQ(result.bytes, length(number));
    const bool right =
        result.bytes == length(number) && pattern_.matches(std::span(buffer).first(result.bytes), number);
    EXPECT_TRUE(right) << "of message " << number;
    return right;
  }
  /// Which message it is, of that many. As many: none of them.
  [[nodiscard]] std::uint64_t number_of(std::span<const std::byte> message, std::uint64_t messages) const {
    std::uint64_t number = 0;
    while (number < messages && (message.size() != length(number) || !pattern_.matches(message, number))) ++number;
    return number;
  }
  static Mailbox::Loss wait_for_loss(Mailbox& mailbox) {
    Mailbox::Loss loss{};
    while (mailbox.losses(std::span(&loss, 1)) == 0) mailbox.wait(kTimeout);
    return loss;
  }
};

}  // namespace wherry::fault
