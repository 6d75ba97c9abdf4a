// SPDX-License-Identifier: Apache-2.0
// Keeps the messages that no receive was posted for: their payloads, or where these lie in their senders' memory.
#pragma once

#include <cstdint>

#include "limits.hpp"
#include "link.hpp"
#include "matching.hpp"
#include "pool.hpp"
#include "requests.hpp"

namespace wherry::mpi {

static_assert(sizeof(Unexpected) <= kOverrunPerByte * sizeof(PacketHead));

class UnexpectedMessages final : public PayloadSink {
 public:
  explicit UnexpectedMessages(Limits& limits) : limits_(limits) {}

  /// The message of the packet that begins. Throws std::bad_alloc.
  Unexpected& keep(Inflow& inflow, const Envelope& envelope);
  /// A message of this endpoint to itself, whose payload stays where the offer says.
  Unexpected& keep_own(Link& self, const Envelope& envelope, Offer& offer);
  /// The payload is the offer's copy, which no longer is the message's own.
  void take_copy(Unexpected& message);
  /// Forgets it. It is in no list any more.
  void drop(Unexpected& message);
  /// Bytes of the payload that are here.
  static std::uint64_t arrived_bytes(const Unexpected& message) {
    return message.inflow != nullptr ? message.inflow->arrived : message.envelope.bytes;
  }

  void arrived(Inflow& inflow) override;
  void lost(Inflow& inflow) override;

  void end_round() { ++round_; }
  /// Came with the last round. MPICH's MPI_Dist_graph_create probes for any source, then receives from any, and takes
  /// its own message, which goes another way, for the probed one unless it has polled all ways in between.
  [[nodiscard]] bool is_new(const Unexpected& message) const {
    return message.own == nullptr && message.round + 1 == round_;
  }

 private:
  /// What a message takes here that is neither announced nor still in its sender's buffer.
  static std::uint64_t kept_bytes(const Unexpected& message) { return sizeof(message) + message.envelope.bytes; }

  Limits& limits_;
  Pool<Unexpected> messages_;
  std::uint32_t round_ = 0;
};

}  // namespace wherry::mpi
