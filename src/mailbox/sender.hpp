// SPDX-License-Identifier: Apache-2.0
// Sends messages into this side's sections in other mailboxes.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/mailbox.hpp>

#include "mailbox/connector.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/progress_engine.hpp"
#include "mailbox/waiter.hpp"
#include "mailbox/write_interest.hpp"

namespace wherry::mailbox {

class Sender {
 public:
  Sender(Pairs& pairs, WriteInterest& write_interest, Connector& connector, ProgressEngine& engine, Waiter& waiter)
      : pairs_(pairs), write_interest_(write_interest), connector_(connector), engine_(engine), waiter_(waiter) {}

  // As the functions of Mailbox.
  Result try_send(Mailbox::Peer to, Mailbox::Outgoing& message) noexcept;
  Result try_send(Mailbox::Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept;
  Result try_send_whole(Mailbox::Peer to, Mailbox::Outgoing& message) noexcept;
  std::size_t room(Mailbox::Peer to, std::size_t least) noexcept;
  Result send(Mailbox::Peer to, Mailbox::Outgoing& message, const Timeout& timeout) noexcept;

 private:
  /// Returns EPIPE or ECONNRESET if the peer has ended, else 0.
  [[nodiscard]] static int ending_of(const Pair& pair) noexcept {
    if (pair.in->finished() != 0) [[unlikely]]
      return EPIPE;
    return pair.gone ? ECONNRESET : 0;
  }
  Result refuse(Pair* pair) noexcept;
  Result send_open(Pair& pair, Mailbox::Outgoing& message) noexcept;
  Result send_open_whole(Pair& pair, Mailbox::Outgoing& message) noexcept;
  Result send_not_inlined(Mailbox::Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept;
  void want_room(Pair& pair, WantedRoom wanted = {}) noexcept;
  bool wait_for_room(Pair& pair, const fabric::Deadline& deadline) noexcept;

  Pairs& pairs_;
  WriteInterest& write_interest_;
  Connector& connector_;
  ProgressEngine& engine_;
  Waiter& waiter_;
};

}  // namespace wherry::mailbox
