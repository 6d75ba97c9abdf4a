// SPDX-License-Identifier: Apache-2.0
#include "common/zmq_library.hpp"

#include <system_error>

#include "common/environment.hpp"

namespace wherry::tools {
namespace {

std::filesystem::path forwarder_place() { return library_folder() / "zmq-forward" / "libzmq.so.5"; }

}  // namespace

std::filesystem::path zmq_library_place() { return library_folder() / "zmq" / "lib" / "libzmq.so.5"; }

std::optional<std::filesystem::path> find_zmq_library() {
  std::error_code error;
  auto library = zmq_library_place();
  if (!std::filesystem::exists(library, error) || !std::filesystem::exists(forwarder_place(), error)) return {};
  return library;
}

void use_zmq_library() { put_first("LD_PRELOAD", forwarder_place().string()); }

}  // namespace wherry::tools
