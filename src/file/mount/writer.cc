// SPDX-License-Identifier: Apache-2.0
#include "file/mount/writer.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "base/log.hpp"
#include "file/wire/status.hpp"

namespace wherry::file::mount {

/// Does not use fuse_req_getgroups, which in libfuse 3.14 reads beyond its buffer.
bool Writer::is_in_group(gid_t wanted) const {
  if (group == wanted) return true;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name != "Groups:") continue;
    for (gid_t one = 0; words >> one;) {
      if (one == wanted) return true;
    }
  }
  return false;
}

/// If set_mode is not permitted, the server is unprivileged, and its write has already dropped the bits.
void drop_set_id_bits(Host& host, Host::Handle handle, std::uint32_t mode, std::uint32_t by) {
  const std::uint32_t dropped = bits_dropped(mode, by);
  if (dropped != 0 && host.set_mode(handle, mode & 07777U & ~dropped) != 0)
    log::write(log::Level::debug, "wherry mount: cannot remove the set-user-ID bits of a written file");
}

bool SetIdDrops::note(const Writer& by) {
  const std::uint32_t drops = drops_of(by);
  if ((drops & ~held_) == 0) return false;
  held_ |= drops;
  return true;
}

std::uint32_t SetIdDrops::begin_sending(bool all) {
  sent_ = held_;
  if (all) held_ = 0;
  return sent_;
}

/// Computed once per process: if a process changes its groups, the old ones count.
std::uint32_t SetIdDrops::drops_of(const Writer& writer) {
  if (writer.is_root()) return 0;
  if (writer == last_) return last_drops_;
  last_ = writer;
  last_drops_ = layout::kFileWriteByUser | (writer.is_in_group(group_) ? 0 : layout::kFileWriteByOutsider);
  return last_drops_;
}

}  // namespace wherry::file::mount
