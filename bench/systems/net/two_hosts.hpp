// SPDX-License-Identifier: Apache-2.0
// Two hosts on this machine: network namespaces that a virtual cable joins.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::bench::net {

/// Needs root, or the permission to make user namespaces.
class TwoHosts {
 public:
  /// Throws std::runtime_error: what failed, and what to install or to permit.
  TwoHosts();
  /// Removes the files, in the process that made them. The namespaces end with their last process.
  ~TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  [[nodiscard]] static std::string address(std::uint32_t host) { return kAddresses.at(host); }

  /// Moves this process to a host, 0 or 1. The process must have one thread. Throws std::system_error.
  void enter(std::uint32_t host) const;

 private:
  static constexpr std::array kAddresses{"10.98.0.1", "10.98.0.2"};  // seen in these namespaces only

  class Holder;

  /// Throws std::runtime_error with what the program printed.
  void run(std::uint32_t host, const std::string& command) const;
  void set_environment(std::uint32_t host) const;

  UniqueFd user_;  ///< the user namespace of both; none for root
  std::array<UniqueFd, 2> networks_;
  std::filesystem::path folder_;  ///< of the files that Wherry's programs on both hosts need
  int owner_ = 0;                 ///< process id
};

}  // namespace wherry::bench::net
