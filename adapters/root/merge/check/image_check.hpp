// SPDX-License-Identifier: Apache-2.0
// Looks at the structure of a ROOT file before ROOT does.
//
// ROOT trusts its files: a length that is wrong is a read beyond the end, or the end of the process. What is checked is
// everything that leads ROOT from one place of the file to another, and every length of something that it will read or
// decompress. What is inside an object is not: that takes its class.
//
//     0 | header: where it ends, where the streamer infos are, how long the name is
//   100 | record of the top directory: where its key list is
//       | record | record | gap | record | ...   each begins with its length, gaps with theirs negated
//   end |
//
// A key list repeats the keys of the records that are in the directory. A record is a key, then the object, in
// compressed blocks of which each says how long it is, or as it is.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// Empty if the structure is sound, else what is wrong and where. Reads nothing outside `image`, never throws except
/// std::bad_alloc; memory and time grow with the number of records. The bytes are read once each, so what a hostile
/// writer changes meanwhile or later is not seen.
std::string fault_in_image(std::span<const std::byte> image);

}  // namespace wherry::merge
