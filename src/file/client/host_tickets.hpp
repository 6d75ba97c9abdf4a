// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "file/client/host_link.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Tickets, with which other processes open files of this host on their own connections. They end with the file's
/// handle, and with the connection.
///
/// Functions return 0 or an errno value. Threads and blocking as in Host.
class HostTickets {
 public:
  using Handle = HostLink::Handle;

  explicit HostTickets(HostLink& link) : link_(link) {}

  /// `flags`: layout::kFileOpenRead, layout::kFileOpenWrite or both. While a ticket for writing lives, the file counts
  /// as written to: no data of it is durable until it is flushed, and a reboot of the host loses some.
  int make(Handle handle, std::uint32_t flags, layout::FileTicket& ticket);
  /// Ends the tickets of a handle. After it returns 0, no change of the file by them can follow.
  int end(Handle handle);
  /// Records that another process wrote to the file by a ticket, to a server of the host's boot `boot`. As with
  /// Host::write, the data is not durable yet. EIO: the host has rebooted since, and the data is lost.
  int note_written(Handle handle, const BootId& boot);

 private:
  HostLink& link_;
};

}  // namespace wherry::file
