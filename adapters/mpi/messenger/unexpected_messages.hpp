// SPDX-License-Identifier: Apache-2.0
// Keeps messages for which no receive is posted: their payloads, or where these lie in the sender's memory.
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

  /// Keeps the message of the packet that begins to arrive. Throws std::bad_alloc.
  Unexpected& keep(Inflow& inflow, const Envelope& envelope);
  /// Keeps a message of this endpoint to itself. Its payload stays where the offer says.
  Unexpected& keep_own(Link& self, const Envelope& envelope, Offer& offer);
  /// Moves the offer's copy of the payload into the message, and detaches the message from the offer.
  void take_copy(Unexpected& message);
  /// Frees a message that is no longer in a list.
  void drop(Unexpected& message);
  /// Bytes of the payload that have arrived.
  static std::uint64_t arrived_bytes(const Unexpected& message) {
    return message.inflow != nullptr ? message.inflow->arrived : message.envelope.bytes;
  }

  void arrived(Inflow& inflow) override;
  void lost(Inflow& inflow) override;

  void end_round() { ++round_; }
  /// Whether the message came with the last round of progress(); a peek must not find it yet. MPICH's
  /// MPI_Dist_graph_create probes for any source, then receives from any source. Unless it has polled all its
  /// transports in between, it would receive its own message, which goes another way, instead of the probed one.
  [[nodiscard]] bool is_new(const Unexpected& message) const {
    return message.own == nullptr && message.round + 1 == round_;
  }

 private:
  /// Memory of a message whose payload is kept here.
  static std::uint64_t kept_bytes(const Unexpected& message) { return sizeof(message) + message.envelope.bytes; }

  Limits& limits_;
  Pool<Unexpected> messages_;
  std::uint32_t round_ = 0;
};

}  // namespace wherry::mpi
