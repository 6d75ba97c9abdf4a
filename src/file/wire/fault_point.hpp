// SPDX-License-Identifier: Apache-2.0
// For tests: the points of the protocol at which a test can kill a process.
#pragma once

#include <cstddef>
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
  // A mount's daemon: kept writes.
  delegated,      ///< the server has delegated a file; nothing is kept yet
  recalled,       ///< the server has asked for a file
  write_kept,     ///< a record is valid; its program has no answer yet
  batch_written,  ///< the server has answered; its file's state is not recorded yet
  batch_noted,    ///< the records that were written are still there
  batch_removed,  ///< they are removed; the request still counts as in progress
  given_back,     ///< the server has the file back; that is not recorded yet
  forgotten,      ///< the write buffer has forgotten the file
  // Rings.
  ring_attached,  ///< the supervisor has its descriptor; its program has no answer yet
  ring_copied,    ///< writes are records, and still in the ring
  ring_sealed,    ///< what is in it is not taken yet
  ring_ended,     ///< its memory is unmapped; the server still delegates the file
  // The next daemon.
  replay_copied,     ///< a part of a write of a ring is a record, and still in the ring
  replay_sending,    ///< a request counts as in progress; it is not sent yet
  replay_written,    ///< the server has answered; its file's state is not recorded yet
  replay_noted,      ///< the records that were written are still there
  replay_removed,    ///< they are removed
  replay_forgotten,  ///< one file is forgotten; its remaining records are not removed yet
  replayed,          ///< everything is written; no program has an answer yet
  // What a mount records for its next daemon.
  state_written,    ///< records are in the log, and not valid yet
  state_committed,  ///< they are valid
  state_rewritten,  ///< the new log is complete, and not valid yet
  state_switched,   ///< it is valid; the old one is still there
  handing_over,     ///< the supervisor has no descriptor yet
  descriptor_kept,  ///< a descriptor is sent to the supervisor
  // The supervisor.
  daemon_ended,      ///< the next daemon is not started yet
  daemon_started,    ///< it has no descriptor yet
  descriptor_given,  ///< a descriptor is sent to it
  count_             ///< none
};
inline constexpr std::size_t kFaultPoints = static_cast<std::size_t>(FaultPoint::count_);

/// Called at each point; empty except in tests.
using AtFaultPoint = std::function<void(FaultPoint)>;

inline void pass(const AtFaultPoint& at, FaultPoint point) {
  if (at) at(point);
}

}  // namespace wherry::file
