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

/// Which set-user-ID and set-group-ID bits the held-back writes of a file drop: kFileWriteBy... Not thread-safe.
class SetIdDrops {
 public:
  /// The group of the file.
  void set_group(gid_t group) { group_ = group; }
  /// Notes a write. Returns whether it drops more bits than those before it.
  bool note(const Writer& by);
  /// Returns what the writes drop that are sent now.
  /// @param all  no others are held back
  std::uint32_t begin_sending(bool all);
  void end_sending() { sent_ = 0; }

  [[nodiscard]] std::uint32_t held() const { return held_; }  ///< of the writes that are not being sent
  [[nodiscard]] std::uint32_t unwritten() const { return sent_ | held_; }

 private:
  std::uint32_t drops_of(const Writer& writer);

  gid_t group_ = 0;
  std::uint32_t held_ = 0;
  std::uint32_t sent_ = 0;
  Writer last_{};
  std::uint32_t last_drops_ = 0;  ///< of last_
};

}  // namespace wherry::file::mount
