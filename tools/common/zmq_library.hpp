// SPDX-License-Identifier: Apache-2.0
//
// The libzmq that knows wherry://, if it is installed beside this program (scripts/build-zmq).
#pragma once

#include <filesystem>
#include <optional>

namespace wherry::tools {

/// PREFIX/lib/wherry/zmq/lib/libzmq.so.5, where this program is PREFIX/bin/wherry.
std::filesystem::path zmq_library_place();

/// The same if there is such a file, and the small library that use_zmq_library names.
std::optional<std::filesystem::path> find_zmq_library();

/// Makes the programs that this process starts or becomes use that library in place of any other libzmq, also of one
/// that they bring under another name (Python's wheels): LD_PRELOAD names a small library which has the functions of
/// libzmq and loads that one when they are needed (adapters/zmq/forward).
void use_zmq_library();

}  // namespace wherry::tools
