// SPDX-License-Identifier: Apache-2.0
// Which host each node is: WHERRY_HOSTS, an MPI hostfile as it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace wherry {

/// One line is one node: the first is node 0, each other the node after the line before. `4-7 HOST` and `4 HOST` say
/// the nodes. `#` begins a comment. What follows the host (slots=N, max_slots=N) is skipped, and so are the `:N` of
/// MPICH behind it and the `user@` of Open MPI before it. A host is a name, an IPv4 or an IPv6 address (also in
/// brackets). Immutable: from any thread.
class Hosts {
 public:
  /// Throws Error: as open does; EINVAL with the file and the number of the line that is wrong.
  static Hosts read(const std::string& file);
  /// `file` names the text in errors. Throws Error(EINVAL).
  static Hosts parse(std::string_view text, const std::string& file);

  /// Null: the file has no such node.
  [[nodiscard]] const std::string* host_of(std::uint16_t node) const;
  [[nodiscard]] const std::map<std::uint16_t, std::string>& all() const { return hosts_; }

 private:
  std::map<std::uint16_t, std::string> hosts_;  // by node
};

}  // namespace wherry
