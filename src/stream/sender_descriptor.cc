// SPDX-License-Identifier: Apache-2.0
// The send descriptor's rule: once an attempt found too little space the bell for space is armed, or ringing.
#include <utility>

#include "stream/sender.hpp"

namespace wherry::stream {

using fabric::Bell;

int Sender::descriptor() {
  const int fd = connection_.descriptor(Bell::space);
  if (!polled_) {
    polled_ = true;
    if (short_) (void)rearm_descriptor();  // The attempt that asks for space came before the descriptor it is to ring.
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

/// The receiver's descriptor rule for space: armed, or ringing. True: there is space now, of which an event descriptor
/// will not tell.
bool Sender::rearm_descriptor() {
  connection_.arm(Bell::space);
  descriptor_armed_ = true;
  const bool may_go_on = producer_.space() >= wanted_ || obstacle() != 0;
  rang_self_ = may_go_on && !event_polled_;
  if (rang_self_) connection_.notify_self(Bell::space);
  return may_go_on && event_polled_;
}

/// A descriptor that rang is silenced by the attempt it asked for, whatever comes of it; one that cannot have rung
/// costs no system call. When this side rang it, the peer may ring it still. An attempt to send nothing silences it
/// `always`: a ring from an earlier sleep may come late, and a program with nothing to send must not be woken for ever.
void Sender::silence_descriptor(bool always) {
  if (!descriptor_armed_ && !rang_self_ && !always) return;
  if (connection_.silence(Bell::space) && !std::exchange(rang_self_, false)) descriptor_armed_ = false;
}

}  // namespace wherry::stream
