// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace wherry {

/// A (node, port) pair and the fabric that reaches it: `wherry://NODE:PORT`, or `wherry+FABRIC://NODE:PORT` where
/// the configured fabric (WHERRY_FABRIC, default shm) is not the one wanted. NODE and PORT may be `*` where a
/// listener binds: `*` as node is this process's own node, `*` as port is a free port.
struct Address {
  std::string fabric;                 ///< empty: the configured fabric
  std::optional<std::uint16_t> node;  ///< empty: `*`
  std::optional<std::uint16_t> port;  ///< empty: `*`; never 0

  /// Throws Error(EINVAL) that says what is wrong with the text and what an address looks like.
  static Address parse(std::string_view text);

  [[nodiscard]] std::string to_string() const;

  bool operator==(const Address&) const = default;
};

/// As Address::to_string.
std::ostream& operator<<(std::ostream& to, const Address& address);

/// The process at the other end. Node and port are the peer's own statement. Process and user are what this side's
/// operating system says, and unset where it cannot say anything, as between machines.
struct Peer {
  Address address;                 ///< its node, and its port (`*`: a connector, which binds none)
  std::int64_t pid = 0;            ///< process id; 0: not vouched for, or in a pid namespace that is not visible here
  std::uint32_t uid = UINT32_MAX;  ///< effective user id; UINT32_MAX, which is no user: not vouched for
  std::uint32_t gid = UINT32_MAX;  ///< effective group id; likewise
  std::string host{};              ///< the other host's name or address as this side has it; empty: this machine

  /// Whether this side's operating system vouches for process and user. An access check must refuse a peer without.
  [[nodiscard]] bool vouched() const { return uid != UINT32_MAX; }
};

/// The node this process is: WHERRY_NODE; else the line of WHERRY_HOSTS that names this machine, if exactly one does;
/// else 0, the host. Throws Error(EINVAL) if WHERRY_NODE is not a 16-bit number.
std::uint16_t own_node();

}  // namespace wherry
