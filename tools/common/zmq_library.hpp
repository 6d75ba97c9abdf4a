// SPDX-License-Identifier: Apache-2.0
//
// The libzmq that supports wherry://, if it is installed beside this program (scripts/build-zmq).
#pragma once

#include <filesystem>
#include <optional>

namespace wherry::tools {

/// The path of the library: PREFIX/lib/wherry/zmq/lib/libzmq.so.5, if this program is PREFIX/bin/wherry.
std::filesystem::path zmq_library_place();

/// The same path if that file and the forwarding library of use_zmq_library exist.
std::optional<std::filesystem::path> find_zmq_library();

/// Makes the programs that this process starts or executes use this library in place of any other libzmq, even one with
/// another name (Python's wheels). LD_PRELOAD gets a small library with the functions of libzmq, which loads this one
/// on demand (adapters/zmq/forward).
void use_zmq_library();

}  // namespace wherry::tools
