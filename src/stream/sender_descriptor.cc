// SPDX-License-Identifier: Apache-2.0
// Rule of the send descriptor: after an attempt found too little space, the space bell is armed or ringing.
#include <utility>

#include "stream/sender.hpp"

namespace wherry::stream {

using fabric::Bell;

int Sender::descriptor() {
  const int fd = connection_.descriptor(Bell::space);
  if (!polled_) {
    polled_ = true;
    if (short_) (void)rearm_descriptor();  // The attempt that found no space came before the descriptor was requested.
  }
  return fd;
}

int Sender::event_descriptor() {
  const int fd = connection_.event_descriptor(Bell::space);
  polled_ = true;
  event_polled_ = true;
  if (short_) (void)rearm_descriptor();
  return fd;
}

void Sender::raise_descriptor() {
  if (!polled_) return;
  rang_self_ = true;
  connection_.notify_self(Bell::space);
}

/// Keeps the rule for space: the bell is armed or ringing. True: there is space now, which an event descriptor does not
/// signal.
bool Sender::rearm_descriptor() {
  connection_.arm(Bell::space);
  descriptor_armed_ = true;
  const bool may_go_on = producer_.space() >= wanted_ || obstacle() != 0;
  rang_self_ = may_go_on && !event_polled_;
  if (rang_self_) connection_.notify_self(Bell::space);
  return may_go_on && event_polled_;
}

/// Silences the descriptor before an attempt, whatever its result. A descriptor that cannot have rung costs no system
/// call. If this side rang it, the peer may still ring it. An attempt to send nothing silences it `always`: a ring from
/// an earlier sleep may come late, and must not wake a program with nothing to send for ever.
void Sender::silence_descriptor(bool always) {
  if (!descriptor_armed_ && !rang_self_ && !always) return;
  if (connection_.silence(Bell::space) && !std::exchange(rang_self_, false)) descriptor_armed_ = false;
}

}  // namespace wherry::stream
