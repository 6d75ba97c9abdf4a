// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

#include "file/client/host.hpp"

namespace wherry::file {

/// Sends, and receives with `receive`, which returns an errno value, or nothing if the connection broke. If it broke,
/// the request is sent again over a new connection, with FileRequest::repeated set.
template <class Receive>
int Host::exchange(Asked asked, File* file, Receive receive) {
  std::optional<Clock::time_point> deadline;
  while (true) {
    if (!connection_ && asked.once) return ECONNRESET;
    if (!connection_) {
      if (!deadline) deadline = Clock::now() + options_.timeout;
      if (const int error = reconnect(*deadline); error != 0) return error;
    }
    if (file != nullptr && file->closed) return EBADF;
    if (file != nullptr && file->stale) return ESTALE;
    if (file != nullptr) asked.request.handle = file->handle;
    if (asked.target != nullptr) {
      if (asked.target->closed) return EBADF;
      if (asked.target->stale) return ESTALE;
      asked.copy.handle = asked.target->handle;
      asked.second = {reinterpret_cast<const char*>(&asked.copy), sizeof asked.copy};
    }
    if (connection_->send(asked.request, asked.name, asked.second, Buffers(asked.data), asked.data_bytes)) {
      if (const auto error = receive(*connection_)) return *error;
    }
    if (connection_->may_have_done()) asked.request.repeated = 1;
    connection_.reset();
  }
}

}  // namespace wherry::file
