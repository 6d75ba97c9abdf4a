// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top/reading.hpp"

namespace wherry::tools {

/// The activity of an endpoint per second.
struct Rates {
  double bytes_sent = 0;
  double sends = 0;
  double bytes_received = 0;
  double receives = 0;
  double sleeps = 0;  ///< of both directions
  double wakes = 0;   ///< of the peer, by both directions
};

/// An endpoint with its process, and its rates between two readings.
struct Activity {
  const ProcessReading* process = nullptr;
  const EndpointReading* endpoint = nullptr;
  Rates rates;
};

/// Returns one activity for each endpoint of `now`, the busiest first, then by process and record. An endpoint that is
/// not in `before` counts from when it was opened. The result points into `now`.
std::vector<Activity> activities(const Reading& before, const Reading& now);

}  // namespace wherry::tools
