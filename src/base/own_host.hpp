// SPDX-License-Identifier: Apache-2.0
// Which host of WHERRY_HOSTS this machine is, and therefore which node this process is.
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
  /// `addresses`: each 4 or 16 bytes in network byte order.
  OwnHost(std::string name, std::vector<std::string> addresses);

  /// Whether `host` is the host name, with its domain or without, an address of this machine, or a loopback address.
  /// Asks no resolver.
  [[nodiscard]] bool is_called(const std::string& host) const;
  /// Whether `host` resolves to an address of this machine. Blocks as long as the system's resolver does.
  [[nodiscard]] bool resolves_from(const std::string& host) const;
  /// "alpha (10.0.0.1, 2001:db8::1)"; without loopback addresses.
  [[nodiscard]] std::string to_string() const;

 private:
  [[nodiscard]] bool has(const std::string& address) const;

  std::string name_;
  std::vector<std::string> addresses_;
};

/// The nodes of this machine, ascending. The resolver is asked only if the file has this machine under none of its own
/// names, and then not for longer than about 5 s.
std::vector<std::uint16_t> nodes_of(const Hosts& hosts, const OwnHost& own);

/// The hosts of a job, and this process's place among them.
struct OwnPlace {
  std::string file;
  Hosts hosts;
  std::uint16_t node = 0;

  /// Whether that node is on the host of the own node: its line has the same name or address.
  [[nodiscard]] bool is_here(std::uint16_t other) const;
  /// Whether all nodes are.
  [[nodiscard]] bool is_alone() const;
};

/// What WHERRY_HOSTS and WHERRY_NODE say. Kept until the file or a variable changes. Throws Error: as Hosts::read does;
/// EINVAL: WHERRY_HOSTS is not set, the file has no line for WHERRY_NODE, or, without WHERRY_NODE, none or several
/// lines name this machine. From any thread.
std::shared_ptr<const OwnPlace> own_place();

}  // namespace wherry
