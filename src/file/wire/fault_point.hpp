// SPDX-License-Identifier: Apache-2.0
// For tests: the points of the protocol at which a test can kill a process.
#pragma once

#include <cstdint>
#include <functional>

namespace wherry::file {

enum class FaultPoint : std::uint8_t {
  // The server.
  request_taken,  ///< a request is read; nothing is done yet
  piece_written,  ///< part of a write's data is in the file
  call_made,      ///< the call is done; the answer is not sent
  piece_read,     ///< part of a read's data is sent
  answered,       ///< the answer is sent
  // The client.
  request_sent,  ///< without its data
  data_sent,     ///< part of the data is sent
  answer_begun,  ///< the header of an answer has arrived
  connected,     ///< to a restarted server; no file is reopened yet
  reopened,      ///< one file is reopened there
  lent,          ///< the number of the server's descriptor is known; the descriptor is not taken yet
};

/// Called at each point; empty except in tests.
using AtFaultPoint = std::function<void(FaultPoint)>;

inline void pass(const AtFaultPoint& at, FaultPoint point) {
  if (at) at(point);
}

}  // namespace wherry::file
