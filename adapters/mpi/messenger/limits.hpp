// SPDX-License-Identifier: Apache-2.0
// Limits the memory that peers can make this process hold.
//
// Beyond 64 MiB of unexpected messages, each peer that adds to them is asked to announce its messages
// (Operation::stop_eager). A correct peer can then add only what is on its way: what its section holds, and what it
// sends before it looks, which Messenger::admit limits. A peer that adds more is disconnected and its messages are
// dropped; other peers are not affected. A peer that asks for data without taking the answers is disconnected, too
// (target.cc); correct peers stay below kMostAsked.
#pragma once

#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "link.hpp"
#include "link_table.hpp"
#include "outbox.hpp"

namespace wherry::mpi {

/// Upper bound of the memory that an unexpected message takes here, per byte of its packet. The payload has the same
/// length on both sides.
inline constexpr std::uint64_t kOverrunPerByte = 8;
/// The longest payload that a peer may send unasked, as a message or a write. Longer ones are announced.
inline constexpr std::uint64_t kMostUnasked = 1 << 20;

/// Limit of short answers under way from one peer, in bytes. The peer copies an answer for which it finds no room.
inline constexpr std::uint64_t kMostAsked = 32 << 20;

class Limits {
 public:
  Limits(Mailbox& mailbox, LinkTable& links, Outbox& outbox) : mailbox_(mailbox), links_(links), outbox_(outbox) {}

  /// Counts `bytes` of an unexpected message from this peer, and may send it `stop_eager`.
  void keep(Link& from, std::uint64_t bytes);
  /// Counts an unexpected message of this process to itself.
  void keep_own(std::uint64_t bytes) { buffered_ += bytes; }
  void release(std::uint64_t bytes);
  /// Whether the peer has sent more unasked after `stop_eager` than could have been on its way.
  [[nodiscard]] bool overruns(const Link& link) const noexcept;
  /// Whether the peer has more requests under way here than a correct peer can have: kMostHeld in limits.cc.
  [[nodiscard]] static bool is_exceeded(const Link& link) noexcept;

  std::size_t injections = 0;  ///< injected messages and one-sided operations under way to peers

 private:
  void stop_eager(Link& link);
  void resume_eager();

  Mailbox& mailbox_;
  LinkTable& links_;
  Outbox& outbox_;
  std::uint64_t buffered_ = 0;  ///< bytes of unexpected messages
  bool any_stopped_ = false;
};

}  // namespace wherry::mpi
