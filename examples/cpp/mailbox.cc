// SPDX-License-Identifier: Apache-2.0
// mailbox COUNT: prints COUNT messages of any number of senders and answers each; mailbox send TEXT: sends one.
#include <wherry/wherry.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string_view>

namespace {

using wherry::Mailbox;
using Buffer = std::array<char, 4096>;

/// Prints the next message; whose it is, or kNoPeer: it failed, or the awaited peer has ended.
Mailbox::Peer print_next(Mailbox& mailbox, Mailbox::Peer awaited = Mailbox::kNoPeer) {
  Buffer buffer;
  Mailbox::Peer from = Mailbox::kNoPeer;
  wherry::Result got;
  while ((got = mailbox.receive(buffer, from)).would_block()) {
    Mailbox::Loss loss{};  // of a peer that has left, or died: all that it had sent was received before
    if (mailbox.losses(std::span(&loss, 1)) == 0) continue;
    if (loss.peer == awaited) return Mailbox::kNoPeer;
    mailbox.forget(loss.peer);
  }
  if (!got) {
    std::cerr << "receive: " << got << '\n';
    return Mailbox::kNoPeer;
  }
  std::cout << std::string_view(buffer.data(), got.bytes) << '\n';
  return from;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  try {
    Mailbox mailbox({.budget = 64 << 10});  // bytes, whatever the number of senders
    if (count > 2) {
      const Mailbox::Peer receiver = mailbox.connect("wherry://0:2000");
      return mailbox.send(receiver, arguments[2]) && print_next(mailbox, receiver) == receiver ? 0 : 1;
    }
    mailbox.listen("wherry://*:2000");
    for (long left = std::strtol(arguments[1], nullptr, 10); left > 0; --left) {
      const Mailbox::Peer from = print_next(mailbox);
      if (from == Mailbox::kNoPeer || !mailbox.send(from, "received")) return 1;
    }
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}
