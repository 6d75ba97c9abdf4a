// SPDX-License-Identifier: Apache-2.0
//
// What libwherry-direct.so, which knows a host's server, does for libwherry-preload.so, which must not: it comes into
// every program, and most of them move nothing large.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/host_ticket.hpp"
#include "layout/transfer_class.hpp"

namespace wherry::preload {

/// Functions that fail return a negative errno value. None throws. Threads: any, with signals blocked.
struct Direct {
  /// Sees that there is a connection to the ticket's server. False: there can be none.
  bool (*connect)(const layout::HostTicket& ticket);
  /// Opens what the mount has given a ticket for. Null: it cannot be had.
  void* (*open)(const layout::HostTicket& ticket);
  /// Bytes; fewer than asked for: the end of the file. On failure the buffer may be overwritten.
  std::int64_t (*read)(void* file, std::uint64_t offset, void* into, std::size_t bytes);
  /// All bytes. On failure any part of them may be in the file.
  std::int64_t (*write)(void* file, std::uint64_t offset, const void* from, std::size_t bytes);
  /// Of the server's kernel.
  void (*boot)(void* file, std::uint8_t (&id)[16]);
  /// Of the statistics page, kTransferClasses of them, until the process ends or forks. Null: it has none.
  layout::TransferClass* (*transfer_classes)();
  void (*close)(void* file);
  /// All connections are closed. No file is open, and none is opened any more.
  void (*end)();
  /// In a forked child: the parent's objects are not used any more.
  /// @param quiet  no other thread was inside a call
  void (*forget_after_fork)(bool quiet);
};

/// The one symbol of the library, as dlsym finds it.
/// @param goes_on  asked every 20 ms while a thread waits for the server; false: its call is to end, with ECONNRESET
using GetDirect = const Direct*(bool (*goes_on)());
inline constexpr const char* kGetDirect = "wherry_direct_2";
inline constexpr const char* kDirectLibrary = "libwherry-direct.so";

}  // namespace wherry::preload
