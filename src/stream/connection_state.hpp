// SPDX-License-Identifier: Apache-2.0
// What has befallen a stream: known to both of its directions as soon as it is known to one.
#pragma once

#include <atomic>

namespace wherry::stream {

struct ConnectionState {
  std::atomic<bool> cancelled{false};  ///< set by Stream::cancel
  /// The peer closed or died. GONE: set with release after the fabric said so, read with acquire before the ring is
  /// looked at, because everything that the peer had published is delivered first.
  std::atomic<bool> gone{false};
};

}  // namespace wherry::stream
