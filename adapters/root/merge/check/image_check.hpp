// SPDX-License-Identifier: Apache-2.0
// Checks the structure of a ROOT file before ROOT reads it.
//
// ROOT trusts its files: a wrong length makes it read out of bounds or end the process. The check covers every offset
// that leads ROOT from one place of the file to another, and every length of data that it will read or decompress. It
// does not cover the content of objects, because that requires their classes.
//
//     0 | header: end of the file, place of the streamer infos, length of the name
//   100 | record of the top directory: place of its key list
//       | record | record | gap | record | ...   each begins with its length; that of a gap is negated
//   end |
//
// A key list repeats the keys of the records in the directory. A record is a key followed by the object. The object is
// either uncompressed or a series of compressed blocks, each with its length.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// Returns an empty string if the structure is valid, else the first fault and its place. Reads nothing outside
/// `image`. Throws only std::bad_alloc. Memory and time grow with the number of records. Does not detect changes that a
/// hostile writer makes during or after the check.
std::string fault_in_image(std::span<const std::byte> image);

}  // namespace wherry::merge
