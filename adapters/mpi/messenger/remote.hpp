// SPDX-License-Identifier: Apache-2.0
// One-sided operations, as the messenger is asked for them: fi_rma(3) and fi_atomic(3).
//
// The process whose memory it is carries every operation out, in its own progress: it checks key, bounds and access,
// then copies. Short payloads lie in the packets. A long write stays with the initiator, from whose memory the target
// reads it; of a long read the target tells where it lies, once it was found to be allowed, and the initiator reads it
// there. Where the kernel does not let one process read the other's memory, long payloads go through sections. That a
// process which may read another's memory could do so without asking is the kernel's matter, and no key's.
//
// Order: a peer's requests are carried out as they come. Only what has more than kMostOrdered bytes is still under way
// when the next begins. Completion: with the target's answer, so always as late as FI_DELIVERY_COMPLETE asks for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"

namespace wherry::mpi {

struct Link;

/// Operations of at most so many bytes are ordered: fi_endpoint(3), max_order_*_size.
inline constexpr std::size_t kMostOrdered = 16 << 10;

struct RemoteRequest {
  Link* to = nullptr;
  Operation operation = Operation::none;  ///< write, read or atomic
  std::array<RemoteRange, kMostRemoteRanges> ranges;
  std::size_t range_count = 0;
  Buffers source;     ///< of a write, and the operands of an atomic
  Buffers comparand;  ///< of an atomic that compares
  Buffers result;     ///< of a read, and of an atomic that fetches
  std::uint8_t datatype = 0;
  std::uint8_t action = 0;
  bool fetches = false;
  std::uint64_t data = 0;
  void* context = nullptr;
  bool has_data = false;
  bool wanted = true;
  bool inject = false;  ///< `source` and `comparand` are the caller's again at once; at most kMostInjected bytes

  [[nodiscard]] std::span<const RemoteRange> targets() const { return {ranges.data(), range_count}; }
  /// Of the memory that is named.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Whether the local buffers are as long as the memory that is named.
  [[nodiscard]] bool fits() const;
  /// FI_RMA or FI_ATOMIC, with FI_READ or FI_WRITE: of the completion, here and, as FI_REMOTE_*, at the target.
  [[nodiscard]] std::uint64_t flags() const;
};

/// What `packet` does to the memory that it names.
struct Access access_of(const PacketHead& packet);
/// The flags of the target's event: FI_RMA or FI_ATOMIC, with FI_REMOTE_READ or FI_REMOTE_WRITE.
std::uint64_t event_of(const PacketHead& packet);
/// Bytes behind the tables of a `write` or an `atomic`. Both fit their limits.
std::uint64_t operand_bytes(const PacketHead& packet);
/// Whether the fields of an `atomic` make sense together.
bool is_valid_atomic(const PacketHead& packet);
/// Carries out an atomic on `target`. `operands` is what followed the tables; `result` null: it does not fetch.
void run_atomic(const PacketHead& packet, const Buffers& target, const std::byte* operands, std::byte* result);

}  // namespace wherry::mpi
