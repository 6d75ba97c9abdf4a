// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "file/client/host_link.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Tickets by which other processes open files that this host has open, on connections of their own. They end with the
/// file's handle, and with the connection.
///
/// Functions return 0 or an errno value. Threads and blocking as of Host.
class HostTickets {
 public:
  using Handle = HostLink::Handle;

  explicit HostTickets(HostLink& link) : link_(link) {}

  /// `flags`: layout::kFileOpenRead, layout::kFileOpenWrite or both.
  int make(Handle handle, std::uint32_t flags, layout::FileTicket& ticket);
  /// What was opened by tickets of this handle changes the file no more when this returns 0.
  int end(Handle handle);
  /// Others have written to the file by a ticket, to a server of this run of the host's kernel: as Host::write, this
  /// data is not durable yet. EIO: it is lost with that kernel.
  int note_written(Handle handle, const BootId& boot);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
