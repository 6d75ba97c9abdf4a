// SPDX-License-Identifier: Apache-2.0
// The identity of the machine that a process runs on: decides whether two processes can share memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wherry {

/// Identifies one boot of a kernel. All zeros: unknown, /proc cannot be read.
using BootId = std::array<std::uint8_t, 16>;

/// Two processes with equal values can connect over shared memory if their jobs (WHERRY_JOB) are equal, too.
struct MachineId {
  BootId boot{};
  std::uint64_t network = 0;  ///< number of the network namespace, in which abstract socket names are valid; 0: unknown
  std::uint32_t user = 0;     ///< effective user id

  bool operator==(const MachineId&) const = default;
  /// Returns the FNV-1a hash of the fields and then `more`; the same in every build.
  [[nodiscard]] std::uint64_t hash(std::string_view more = {}) const;
};

/// Returns the identity for the calling thread. WHERRY_MACHINE is mixed into the boot id: processes with different
/// values seem to run on different machines, which tests use. From any thread; reads two files of /proc.
MachineId own_machine();

/// Returns the boot id of own_machine(). The first call reads /proc.
BootId own_boot_id();

/// Whether `boot` is known and is this kernel's. If so, device, inode and process numbers mean the same on both sides.
bool is_own_kernel(const BootId& boot);

}  // namespace wherry
