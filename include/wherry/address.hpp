// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace wherry {

/// A (node, port) pair, and the fabric that reaches it. The text is `wherry://NODE:PORT` for the configured fabric
/// (WHERRY_FABRIC, default shm), else `wherry+FABRIC://NODE:PORT`. Where a listener binds, NODE and PORT may be `*`: as
/// node, this process's own node; as port, a free port.
struct Address {
  std::string fabric;                 ///< empty: the configured fabric
  std::optional<std::uint16_t> node;  ///< empty: `*`
  std::optional<std::uint16_t> port;  ///< empty: `*`; never 0

  /// Throws Error(EINVAL) whose text names the mistake and shows the form of an address.
  static Address parse(std::string_view text);

  [[nodiscard]] std::string to_string() const;

  bool operator==(const Address&) const = default;
};

/// As Address::to_string.
std::ostream& operator<<(std::ostream& to, const Address& address);

/// The process at the other end. Node and port are the peer's own statement. Process id, user and group come from this
/// side's operating system. They are unset where it does not know them, as between machines.
struct Peer {
  Address address;                 ///< the peer's node and port (port `*`: it connected, and has no port)
  std::int64_t pid = 0;            ///< process id; 0: not vouched for, or in a pid namespace that is not visible here
  std::uint32_t uid = UINT32_MAX;  ///< effective user id; UINT32_MAX (no valid user): not vouched for
  std::uint32_t gid = UINT32_MAX;  ///< effective group id; likewise
  std::string host{};              ///< name or address of the peer's host, as this side knows it; empty: this machine

  /// Whether this side's operating system vouches for process and user. An access check must refuse a peer that is not
  /// vouched for.
  [[nodiscard]] bool vouched() const { return uid != UINT32_MAX; }
};

/// The node number of this process: WHERRY_NODE if set. Otherwise the line of WHERRY_HOSTS that names this machine, if
/// exactly one does. Otherwise 0, the host. Throws Error(EINVAL) if WHERRY_NODE is not a 16-bit number.
std::uint16_t own_node();

}  // namespace wherry
