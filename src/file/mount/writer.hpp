// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "file/client/host.hpp"

namespace wherry::file::mount {

/// The process that a write is of: it decides whether set-user-ID and set-group-ID bits stay. By default root.
struct Writer {
  uid_t user = 0;
  gid_t group = 0;
  pid_t process = 0;

  bool operator==(const Writer&) const = default;
  /// Whether its writes leave these bits, as CAP_FSETID does.
  [[nodiscard]] bool is_root() const { return user == 0; }
  /// Asks /proc for the supplementary groups of the process.
  [[nodiscard]] bool is_in_group(gid_t wanted) const;
};

/// What a write of data that was kept does to set-user-ID and set-group-ID bits where the server does not. Blocks as
/// Host does.
/// @param mode  that the file has
/// @param by  kFileWriteBy...
void drop_set_id_bits(Host& host, Host::Handle handle, std::uint32_t mode, std::uint32_t by);

}  // namespace wherry::file::mount
