// SPDX-License-Identifier: Apache-2.0
//
// The functions of libwherry-direct.so, which talks to a host's server, for libwherry-preload.so. The latter cannot
// contain them: it is loaded into every program, and most programs move nothing large.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/host_ticket.hpp"
#include "layout/transfer_class.hpp"

namespace wherry::preload {

/// Functions that fail return a negative errno value. They throw nothing. Any thread may call them, with signals
/// blocked.
struct Direct {
  /// Connects to the ticket's server unless connected. Returns false if that is impossible.
  bool (*connect)(const layout::HostTicket& ticket);
  /// Opens the file that the mount has given a ticket for. Returns null on failure.
  void* (*open)(const layout::HostTicket& ticket);
  /// Returns the number of bytes; fewer than asked for mean the end of the file. On failure the buffer may be
  /// overwritten.
  std::int64_t (*read)(void* file, std::uint64_t offset, void* into, std::size_t bytes);
  /// Writes all bytes. On failure any part of them may be in the file.
  std::int64_t (*write)(void* file, std::uint64_t offset, const void* from, std::size_t bytes);
  /// Whether the file had set-user-ID or set-group-ID bits after one of the writes.
  bool (*has_set_id)(void* file);
  /// As file::DirectHost::is_warm.
  bool (*is_warm)(void* file, bool writes);
  /// As file::DirectHost::is_shared.
  bool (*is_shared)(void* file);
  /// Sets the boot id of the server's kernel.
  void (*boot)(void* file, std::uint8_t (&id)[16]);
  /// Returns kTransferClasses entries of the statistics page, valid until the process ends or forks. Null if it has
  /// none.
  layout::TransferClass* (*transfer_classes)();
  void (*close)(void* file);
  /// Closes all connections. No file may be open, and none may be opened afterwards.
  void (*end)();
  /// To be called in a forked child: drops the parent's objects.
  /// @param quiet  no other thread was inside a call
  void (*forget_after_fork)(bool quiet);
};

/// Functions of the program's side, which the library calls in the thread that has called it.
struct DirectCaller {
  /// Called every 20 ms while the thread waits for the server; if it returns false, the call ends with ECONNRESET.
  bool (*may_wait)();
  /// Copies between a ring and the program's buffer. Returns false if a byte of it cannot be accessed.
  bool (*copy)(void* to, const void* from, std::size_t bytes);
};

/// The library's only symbol, for dlsym. `caller` must stay valid.
using GetDirect = const Direct*(const DirectCaller& caller);
inline constexpr const char* kGetDirect = "wherry_direct_5";
inline constexpr const char* kDirectLibrary = "libwherry-direct.so";

}  // namespace wherry::preload
