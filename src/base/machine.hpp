// SPDX-License-Identifier: Apache-2.0
// Which machine a process runs on, as far as that decides what it shares with another process.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wherry {

/// Names one run of a kernel; zeros: /proc does not tell.
using BootId = std::array<std::uint8_t, 16>;

/// Two processes with equal values can meet over shared memory if they also agree on the job (WHERRY_JOB).
struct MachineId {
  BootId boot{};
  std::uint64_t network = 0;  ///< number of the network namespace, which abstract socket names belong to; 0: unknown
  std::uint32_t user = 0;     ///< effective user id

  bool operator==(const MachineId&) const = default;
  /// FNV-1a, the same in every build; `more` is hashed behind the fields.
  [[nodiscard]] std::uint64_t hash(std::string_view more = {}) const;
};

/// Of the calling thread. WHERRY_MACHINE is mixed into the boot id: processes of one machine that have different values
/// look as if they ran on different machines, which tests use. From any thread; reads two files of /proc.
MachineId own_machine();

/// The boot id of own_machine(). The first call reads /proc.
BootId own_boot_id();

/// Whether `boot` is known and this kernel's: device, inode and process numbers then mean the same on both sides.
bool is_own_kernel(const BootId& boot);

}  // namespace wherry
