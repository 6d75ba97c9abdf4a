// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "file/client/host.hpp"

namespace wherry::file::mount {

/// The process of a write: it decides whether set-user-ID and set-group-ID bits stay. By default root.
struct Writer {
  uid_t user = 0;
  gid_t group = 0;
  pid_t process = 0;

  bool operator==(const Writer&) const = default;
  /// Whether its writes keep these bits, as with CAP_FSETID.
  [[nodiscard]] bool is_root() const { return user == 0; }
  /// Reads the supplementary groups of the process from /proc.
  [[nodiscard]] bool is_in_group(gid_t wanted) const;
};

/// Drops set-user-ID and set-group-ID bits for a held-back write, if the server does not. Blocks as Host does.
/// @param mode  the file's current mode
/// @param by  kFileWriteBy...
void drop_set_id_bits(Host& host, Host::Handle handle, std::uint32_t mode, std::uint32_t by);

}  // namespace wherry::file::mount
