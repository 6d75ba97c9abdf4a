// SPDX-License-Identifier: Apache-2.0
// Looks at an RNTuple before ROOT's merger does, which cannot say which of its inputs it failed at.
#pragma once

#include <cstddef>
#include <span>
#include <string>

class TKey;

namespace wherry::merge {

struct NTupleShape {
  std::string fields;  ///< equal for two that can be merged: names, types and columns of all fields
  std::string fault;   ///< or why this one cannot be
};

/// `file` is what the key's file consists of: every page must lie in it, and have the checksum that it says it has.
/// Without bytes pages are not looked at.
NTupleShape look_at_ntuple(TKey& key, std::span<const std::byte> file);

}  // namespace wherry::merge
