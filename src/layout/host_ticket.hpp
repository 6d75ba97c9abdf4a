// SPDX-License-Identifier: Apache-2.0
// The ioctls by which a program asks `wherry mount` to transfer an open file at the host's server directly, past the
// mount. Both ends run on one machine. Every field has a fixed size.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kHostTicketNone = 0;  // only the address
inline constexpr std::uint32_t kHostTicketReads = 1;
inline constexpr std::uint32_t kHostTicketWrites = 2;

/// Lets the program open the file at the host's server.
struct HostTicket {
  std::uint32_t version;    // W: mount; kHostTicketVersion
  std::uint32_t access;     // W: program: the access it asks for, one bit or none; the mount returns it unchanged
  std::uint8_t random[16];  // W: mount; FileTicket
  char address[104];        // W: mount; of the server, NUL-terminated
};
static_assert(sizeof(HostTicket) == 128 && std::is_trivially_copyable_v<HostTicket>);
static_assert(offsetof(HostTicket, access) == 4 && offsetof(HostTicket, random) == 8);
static_assert(offsetof(HostTicket, address) == 24);
inline constexpr std::uint32_t kHostTicketVersion = 1;

/// A write that the program made with a ticket. The mount answers after the kernel has dropped its older pages of the
/// file.
struct HostWritten {
  std::uint64_t offset;  // W: program
  std::uint64_t length;  // W: program
  std::uint32_t failed;  // W: program; 1: the write failed, perhaps in part, and the file's write tickets end
  std::uint32_t reserved;
  std::uint8_t boot[16];  // W: program; boot ID of the server's kernel, from FileHello
};
static_assert(sizeof(HostWritten) == 40 && offsetof(HostWritten, length) == 8 && offsetof(HostWritten, failed) == 16);
static_assert(offsetof(HostWritten, boot) == 24);

inline constexpr unsigned long kHostTicketGet = _IOWR(0xE7, 1, HostTicket);
inline constexpr unsigned long kHostTicketWritten = _IOW(0xE7, 2, HostWritten);

}  // namespace wherry::layout
