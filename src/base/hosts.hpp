// SPDX-License-Identifier: Apache-2.0
// The host of each node, from WHERRY_HOSTS: an unchanged MPI hostfile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace wherry {

/// Each line is a node: the first is node 0, each other one the node after the previous line's. `4-7 HOST` and `4 HOST`
/// give the nodes explicitly. `#` begins a comment. Words after the host (slots=N, max_slots=N) are ignored, and so are
/// MPICH's `:N` after it and Open MPI's `user@` before it. A host is a name, an IPv4 or an IPv6 address (also in
/// brackets). Immutable: from any thread.
class Hosts {
 public:
  /// Throws Error: as open does; EINVAL with the file and the number of the invalid line.
  static Hosts read(const std::string& file);
  /// `file` names the text in errors. Throws Error(EINVAL).
  static Hosts parse(std::string_view text, const std::string& file);

  /// Returns the host of a node. Null: the file has no such node.
  [[nodiscard]] const std::string* host_of(std::uint16_t node) const;
  [[nodiscard]] const std::map<std::uint16_t, std::string>& all() const { return hosts_; }

 private:
  std::map<std::uint16_t, std::string> hosts_;  // by node
};

}  // namespace wherry
