// SPDX-License-Identifier: Apache-2.0
// For each operation: the contents of its packet, and the function that handles it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/mpi/layout/packet.hpp"
#include "link.hpp"
#include "roles.hpp"

namespace wherry::mpi {

enum class Tail : std::uint8_t { none, payload, operands };  ///< what follows the tables

struct Protocol {
  /// Called once the head and the tables are there. Directs the payload (Inflow::direct), or sets Inflow::error.
  void (*begin)(const Roles& roles, Inflow& inflow) = nullptr;  ///< null: no peer may send it
  Tail tail = Tail::none;
  bool has_pieces = false;  ///< a table of RemotePieces
  bool has_ranges = false;  ///< a table of RemoteRanges
  bool has_name = false;    ///< an endpoint's name
};

/// Returns the protocol of an operation that came from a peer; its `begin` is null if the operation is unknown.
const Protocol& protocol_of(Operation operation);
/// Bytes of the tables. The counts of entries must be in range.
std::size_t table_bytes(const Protocol& protocol, const PacketHead& packet);
/// Whether the fields of the head agree with each other, and with the packet's length.
bool is_consistent(const Protocol& protocol, const PacketHead& packet, std::uint64_t packet_bytes);

}  // namespace wherry::mpi
