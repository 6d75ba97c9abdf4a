// SPDX-License-Identifier: Apache-2.0
// Finds which host of WHERRY_HOSTS this machine is, and so which node this process is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hosts.hpp"

namespace wherry {

/// The names of this machine: its host name, and the addresses of its interfaces in the caller's network namespace.
/// Immutable: from any thread.
class OwnHost {
 public:
  /// Asks the kernel. Throws Error(EMFILE, ENOMEM).
  static OwnHost look();
  /// @param addresses  each 4 or 16 bytes in network byte order
  OwnHost(std::string name, std::vector<std::string> addresses);

  /// Whether `host` is the host name (with or without its domain), an address of this machine, or a loopback address.
  /// Does not use the resolver.
  [[nodiscard]] bool is_called(const std::string& host) const;
  /// Whether `host` resolves to an address of this machine. Blocks as long as the system's resolver does.
  [[nodiscard]] bool resolves_from(const std::string& host) const;
  /// Returns a text such as "alpha (10.0.0.1, 2001:db8::1)", without loopback addresses.
  [[nodiscard]] std::string to_string() const;

 private:
  [[nodiscard]] bool has(const std::string& address) const;

  std::string name_;
  std::vector<std::string> addresses_;
};

/// Returns the nodes of this machine, ascending. Asks the resolver only if no line has one of this machine's own names,
/// and then for about 5 s at most.
std::vector<std::uint16_t> nodes_of(const Hosts& hosts, const OwnHost& own);

/// The hosts of a job, and which node this process is.
struct OwnPlace {
  std::string file;
  Hosts hosts;
  std::uint16_t node = 0;

  /// Whether that node is on this process's host: both lines have the same name or address.
  [[nodiscard]] bool is_here(std::uint16_t other) const;
  /// Whether all nodes are on this process's host.
  [[nodiscard]] bool is_alone() const;
};

/// Returns the place given by WHERRY_HOSTS and WHERRY_NODE, cached until the file or a variable changes. Throws Error:
/// as Hosts::read does; EINVAL: WHERRY_HOSTS is not set, the file has no line for WHERRY_NODE, or, without WHERRY_NODE,
/// no line or several lines name this machine. From any thread.
std::shared_ptr<const OwnPlace> own_place();

}  // namespace wherry
