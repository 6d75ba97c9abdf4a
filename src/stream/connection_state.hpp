// SPDX-License-Identifier: Apache-2.0
// State that both directions of a stream share: cancelled, and peer gone.
#pragma once

#include <atomic>

namespace wherry::stream {

struct ConnectionState {
  std::atomic<bool> cancelled{false};  ///< set by Stream::cancel
  /// The peer closed or died. GONE: stored with release after the fabric reported it, and loaded with acquire before
  /// the ring is read. So everything that the peer had published is delivered first.
  std::atomic<bool> gone{false};
};

}  // namespace wherry::stream
