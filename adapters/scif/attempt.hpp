// SPDX-License-Identifier: Apache-2.0
// How two endpoints connect, over the socket of the rendezvous name:
//
//   connector                                           listener
//     | -- hello, with the memory of its side ------------> |  at connect
//     | -- a fat packet: its socket is not writable now --> |
//     | <------------ hello, with the memory of its side -- |  at accept
//     |                 takes the fat packet: writable now  |
#pragma once

#include "adapters/scif/endpoint.hpp"
#include "adapters/scif/rendezvous.hpp"

namespace wherry::scif {

/// A connection attempt that waits to be accepted.
struct Endpoint::Attempt {
  Peer peer;
  OwnHalf own;
  fabric::Deadline give_up;
  bool may_wait = false;  ///< non-blocking: the program gets the outcome from its next scif_connect
};

}  // namespace wherry::scif
