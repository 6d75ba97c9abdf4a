// SPDX-License-Identifier: Apache-2.0
// Checks an RNTuple before ROOT merges it, because ROOT's merger does not report which of its inputs failed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

class TKey;

namespace wherry::merge {

struct NTupleShape {
  std::string fields;  ///< names, types and columns of all fields; equal for RNTuples that can be merged
  std::string fault;   ///< why this RNTuple cannot be merged; empty if it can
};

/// Reads the description of an RNTuple and checks its pages. Does not throw for invalid data: see NTupleShape::fault.
/// @param file  the bytes of the key's file. Each page must lie within them and have the correct checksum. If empty,
///              pages are not checked.
NTupleShape look_at_ntuple(TKey& key, std::span<const std::byte> file);

}  // namespace wherry::merge
