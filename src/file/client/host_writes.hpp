// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Files that only this client has open, by one handle. The client may hold back its writes to them and send them
/// later.
///
/// Functions that return int return 0 or an errno value. Threads and blocking as in Host.
class HostWrites {
 public:
  using Handle = HostLink::Handle;
  struct Written {
    Result result{};
    std::uint64_t modified = 0;  ///< the file's modification time after the write, in ns since 1970
    /// Only with ENOLCK (not delegated): the request was sent before over a connection that broke, and the file already
    /// has the beginning of its data.
    bool begun = false;
  };

  explicit HostWrites(HostLink& link) : link_(link) {}

  /// Asks for a delegation of the file for writing, or for more room. Returns ECONNRESET if there is no connection, or
  /// it breaks.
  /// @param client  the number by which this client receives recalls (FileCall::await_recalls)
  /// @param room  bytes that may be held back until the next `delegate`, starting from none; 0: not delegated
  int delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::uint64_t& room);
  /// Gives the file back, after all held-back data is written.
  int give_back(Handle handle);
  /// Writes held-back data. ESTALE: the server has ended the delegation, and other programs may have changed the file.
  /// @param by  kFileWriteBy...
  [[nodiscard]] Written write(Handle handle, std::uint64_t offset, std::span<const iovec> from, std::uint32_t by = 0);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
