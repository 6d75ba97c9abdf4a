// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

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

}  // namespace wherry::file::mount
