// SPDX-License-Identifier: Apache-2.0
// What peers may make this process hold. Beyond 64 MiB of unexpected messages each peer that adds to them is asked to
// announce its messages instead (Operation::stop_eager). A peer that keeps the rules then adds only what is on its way:
// what its section holds, and what it sends before it looks, which Messenger::admit limits. A peer that adds more is
// closed, and what it has sent is dropped: other peers go on. Likewise a peer that asks for more than kMostAsked
// without taking the answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "link.hpp"
#include "link_table.hpp"
#include "outbox.hpp"

namespace wherry::mpi {

/// Bytes that an unexpected message takes here for each byte of its packet, at most; the payload is as long on both
/// sides.
inline constexpr std::uint64_t kOverrunPerByte = 8;
/// The longest payload that is sent unasked: longer ones are announced.
inline constexpr std::uint64_t kMostUnasked = 1 << 20;

/// Bytes that this process has asked one peer for, of answers that the peer copies where it finds no room for them.
inline constexpr std::uint64_t kMostAsked = 32 << 20;

class Limits {
 public:
  Limits(Mailbox& mailbox, LinkTable& links, Outbox& outbox) : mailbox_(mailbox), links_(links), outbox_(outbox) {}

  /// `bytes` more are kept of a message from there that nothing was posted for.
  void keep(Link& from, std::uint64_t bytes);
  /// The same of a message of this process to itself.
  void keep_own(std::uint64_t bytes) { buffered_ += bytes; }
  void release(std::uint64_t bytes);
  /// The peer goes on sending unasked long after it was asked not to.
  [[nodiscard]] bool overruns(const Link& link) const noexcept;
  /// The peer has more under way here than its own process could hold as many requests of.
  [[nodiscard]] static bool is_exceeded(const Link& link) noexcept;

  std::size_t injections = 0;  ///< injected messages and one-sided operations on their way to others

 private:
  void stop_eager(Link& link);
  void resume_eager();

  Mailbox& mailbox_;
  LinkTable& links_;
  Outbox& outbox_;
  std::uint64_t buffered_ = 0;  ///< bytes of messages that nothing was posted for
  bool any_stopped_ = false;
};

}  // namespace wherry::mpi
