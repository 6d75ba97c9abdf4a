// SPDX-License-Identifier: Apache-2.0
// Looks up the addresses of a host while its caller does other things: the system's resolver may take many seconds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {

/// Never blocks. Not thread-safe. A name is looked up by a thread of its own, which outlives this object if the
/// resolver takes longer. An address needs no thread: its result is there at once.
class Lookup {
 public:
  /// Throws Error: EMFILE, EAGAIN (no further thread).
  explicit Lookup(const std::string& host);

  /// Returns a descriptor that is readable once there is a result. This object owns it.
  [[nodiscard]] int descriptor() const;
  /// Returns the result, as resolve(); empty while there is none. Throws Error(ENOENT).
  [[nodiscard]] std::optional<std::vector<SocketAddress>> result() const;

 private:
  struct Answer;  // shared with the thread
  std::shared_ptr<Answer> answer_;
};

}  // namespace wherry::fabric::ofi
