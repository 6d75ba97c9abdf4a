// SPDX-License-Identifier: Apache-2.0
// Requests for one-sided operations: fi_rma(3) and fi_atomic(3).
//
// The process that owns the memory carries out every operation, in its own progress: it checks key, bounds and access,
// then copies. Short payloads travel in the packets. A long write stays with the initiator, and the target reads it
// there. For a long read the target tells where the memory lies once the request was allowed, and the initiator reads
// it. If the kernel does not let one process read the other's memory, long payloads go through sections. Keys do not
// protect against a process that may read another's memory anyway; that is the kernel's decision.
//
// Order: a peer's requests are carried out in the order of arrival. Only operations of more than kMostOrdered bytes may
// still be under way when the next begins. Completion: with the target's answer, as late as FI_DELIVERY_COMPLETE
// requires.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"

namespace wherry::mpi {

struct Link;

/// Longest ordered operation, in bytes: fi_endpoint(3), max_order_*_size.
inline constexpr std::size_t kMostOrdered = 16 << 10;

struct RemoteRequest {
  Link* to = nullptr;
  Operation operation = Operation::none;  ///< write, read or atomic
  std::array<RemoteRange, kMostRemoteRanges> ranges;
  std::size_t range_count = 0;
  Buffers source;     ///< payload of a write, operands of an atomic
  Buffers comparand;  ///< comparands of an atomic that compares
  Buffers result;     ///< destination of a read, and of an atomic that fetches
  std::uint8_t datatype = 0;
  std::uint8_t action = 0;
  bool fetches = false;
  std::uint64_t data = 0;
  void* context = nullptr;
  bool has_data = false;
  bool wanted = true;
  bool inject = false;  ///< the caller may reuse `source` and `comparand` at once; at most kMostInjected bytes

  [[nodiscard]] std::span<const RemoteRange> targets() const { return {ranges.data(), range_count}; }
  /// Bytes of the memory that the ranges name.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Whether the local buffers are as long as the memory that the ranges name.
  [[nodiscard]] bool fits() const;
  /// Flags of the completion: FI_RMA or FI_ATOMIC, with FI_READ or FI_WRITE.
  [[nodiscard]] std::uint64_t flags() const;
};

/// What `packet` does to the memory that it names.
struct Access access_of(const PacketHead& packet);
/// The flags of the target's event: FI_RMA or FI_ATOMIC, with FI_REMOTE_READ or FI_REMOTE_WRITE.
std::uint64_t event_of(const PacketHead& packet);
/// Bytes behind the tables of a `write` or an `atomic`. The fields are within their limits.
std::uint64_t operand_bytes(const PacketHead& packet);
/// Whether the fields of an `atomic` make sense together.
bool is_valid_atomic(const PacketHead& packet);
/// Carries out an atomic on `target`. `operands` is what followed the tables. `result` is null if it does not fetch.
void run_atomic(const PacketHead& packet, const Buffers& target, const std::byte* operands, std::byte* result);

}  // namespace wherry::mpi
