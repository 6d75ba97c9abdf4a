// SPDX-License-Identifier: Apache-2.0
// The arithmetic of fi_atomic(3), on memory that may be aligned to nothing. One operation is atomic to others of the
// same domain, whose lock is held.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::mpi {

/// What is sent with the operation and what comes back: the sets of calls of fi_atomic(3).
enum class AtomicKind : std::uint8_t { base, fetch, compare };

/// 0: there is no such datatype. Datatypes and actions are fi_datatype and fi_op, as peers send them.
std::size_t bytes_of_datatype(unsigned datatype);
bool is_atomic(unsigned datatype, unsigned action, AtomicKind kind);
/// Whether the action compares; it needs comparands then.
bool compares(unsigned action);
/// Whether the action is a read: it has no operand, and changes nothing.
bool only_reads(unsigned action);

struct AtomicOperands {
  std::byte* target;
  const std::byte* operand;    ///< null for a read
  const std::byte* comparand;  ///< null where nothing is compared
  std::byte* result;           ///< the values from before; null if they are not wanted
};
/// `count` elements, of a pair that is_atomic.
void run_atomic(unsigned datatype, unsigned action, const AtomicOperands& operands, std::size_t count);

}  // namespace wherry::mpi
