// SPDX-License-Identifier: Apache-2.0
// For tests: the places of the protocol at which a process can be killed.
#pragma once

#include <cstdint>
#include <functional>

namespace wherry::file {

enum class FaultPoint : std::uint8_t {
  // The server.
  request_taken,  ///< a request is read, nothing is done yet
  piece_written,  ///< a part of a write's data is in the file
  call_made,      ///< it is done, the answer is not sent
  piece_read,     ///< a part of a read's data is sent
  answered,       ///< the answer is sent
  // The client.
  request_sent,  ///< without its data
  data_sent,     ///< a part of the data is sent
  answer_begun,  ///< the head of an answer has arrived
  connected,     ///< to a server that was started again; no file is open there yet
  reopened,      ///< a file is open there again
  lent,          ///< the number of the server's descriptor is known, which is not taken yet
};

/// Called at each point; empty outside of tests.
using AtFaultPoint = std::function<void(FaultPoint)>;

inline void pass(const AtFaultPoint& at, FaultPoint point) {
  if (at) at(point);
}

}  // namespace wherry::file
