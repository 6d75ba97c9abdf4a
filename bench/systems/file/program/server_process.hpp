// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.hpp"

namespace wherry::bench::file {

/// The host's server of one directory, as `wherry serve` runs it, in a process of its own that ends with this object,
/// and with this process.
class ServerProcess {
 public:
  /// Returns when it listens. Throws std::runtime_error, and it says why on standard error, if it cannot.
  explicit ServerProcess(const std::string& root);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  UniqueFd stop_;  // The server ends with its last open copy.
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace wherry::bench::file
