// SPDX-License-Identifier: Apache-2.0
// Converts loans and messages between C and C++. A struct of the C caller holds the members of the C++ object, which
// exists only during a call. So moving data allocates nothing.
#pragma once

#include <wherry/wherry.h>
#include <wherry/message.hpp>

namespace wherry::capi {

/// Moves a loan or message out of the C struct, and back into it.
struct Held {
  static Loan take(wherry_loan& from) noexcept {
    Loan loan;
    loan.slabs_ = static_cast<message::Slabs*>(from.pool);
    loan.bytes_ = {static_cast<std::byte*>(from.bytes), from.size};
    loan.block_ = from.block;
    from = {};
    return loan;
  }
  /// Leaves the struct as WHERRY_NONE if the loan holds nothing.
  static void put(Loan&& loan, wherry_loan& into) noexcept {
    const bool held = loan.held();
    into = {.bytes = loan.bytes_.data(),
            .size = loan.bytes_.size(),
            .pool = std::exchange(loan.slabs_, nullptr),
            .block = held ? loan.block_ : 0,
            .reserved = 0};
  }

  static Message take(wherry_message& from) noexcept {
    Message held = view(from);
    from = {};
    return held;
  }
  static void put(Message&& message, wherry_message& into) noexcept {
    into = {.bytes = message.bytes_.data(),
            .size = message.bytes_.size(),
            .connection = std::exchange(message.connection_, nullptr),
            .ticket = message.ticket_,
            .process = message.process_};
  }
  /// Returns the publisher of a held message.
  static const Peer& publisher(const wherry_message& of) noexcept {
    Message held = view(of);
    const Peer& peer = held.publisher();
    held.connection_ = nullptr;  // the caller keeps the message
    return peer;
  }

 private:
  static Message view(const wherry_message& of) noexcept {
    Message held;
    held.connection_ = static_cast<message::SubscriberConnection*>(of.connection);
    held.bytes_ = {static_cast<const std::byte*>(of.bytes), of.size};
    held.ticket_ = of.ticket;
    held.process_ = of.process;
    return held;
  }
};

}  // namespace wherry::capi
