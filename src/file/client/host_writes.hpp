// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Files of a host's server that this client alone has open, by one handle: what it writes may be kept here for a time,
/// and written later.
///
/// Functions that return int return 0 or an errno value. Threads and blocking as of Host.
class HostWrites {
 public:
  using Handle = HostLink::Handle;
  struct Written {
    Result result{};
    std::uint64_t modified = 0;  ///< the file's time of modification afterwards, in ns since 1970
    /// With ENOLCK, which says that the file is not delegated: it was sent before, by a connection that broke, and the
    /// file has the beginning of it.
    bool begun = false;
  };

  explicit HostWrites(HostLink& link) : link_(link) {}

  /// Asks for the file of an open handle, or again for room.
  /// @param client  the number by which this client hears of recalls (FileCall::await_recalls)
  /// @param room  bytes that may be kept before this is asked again, with nothing kept; 0: none, it is not delegated
  /// ECONNRESET: there is no connection, or it breaks.
  int delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::uint64_t& room);
  /// Gives the file back, after all that was kept is written.
  int give_back(Handle handle);
  /// Writes what was kept. ESTALE: the server has not waited for this, and others may have changed the file.
  /// @param by  kFileWriteBy...
  [[nodiscard]] Written write(Handle handle, std::uint64_t offset, std::span<const iovec> from, std::uint32_t by = 0);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
