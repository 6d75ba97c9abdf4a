// SPDX-License-Identifier: Apache-2.0
// The arithmetic of fi_atomic(3), on memory of any alignment. An operation is atomic with respect to others of the same
// domain, because the caller holds the domain's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::mpi {

/// Which operands an operation sends and whether it returns old values: the three sets of calls of fi_atomic(3).
enum class AtomicKind : std::uint8_t { base, fetch, compare };

/// Returns 0 if there is no such datatype. Datatypes and actions are numbers of fi_datatype and fi_op, as peers send
/// them.
std::size_t bytes_of_datatype(unsigned datatype);
bool is_atomic(unsigned datatype, unsigned action, AtomicKind kind);
/// Whether the action compares, and so needs comparands.
bool compares(unsigned action);
/// Whether the action is a read, which has no operand and changes nothing.
bool only_reads(unsigned action);

struct AtomicOperands {
  std::byte* target;
  const std::byte* operand;    ///< null for a read
  const std::byte* comparand;  ///< null if the action does not compare
  std::byte* result;           ///< receives the old values; null if they are not wanted
};
/// Runs the action on `count` elements. is_atomic() must be true of the datatype and the action.
void run_atomic(unsigned datatype, unsigned action, const AtomicOperands& operands, std::size_t count);

}  // namespace wherry::mpi
