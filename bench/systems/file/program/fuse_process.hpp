// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "bench/systems/file/program/passthrough.hpp"

namespace wherry::bench::file {

/// A Passthrough over a folder, served by a process of its own, which ends with this object, and with this process.
/// Only this process and its children see it.
class FuseProcess {
 public:
  /// Returns when it is mounted. Throws std::runtime_error if it cannot be.
  FuseProcess(std::string folder, Passthrough::Cache cache);
  FuseProcess(const FuseProcess&) = delete;
  FuseProcess& operator=(const FuseProcess&) = delete;
  ~FuseProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

}  // namespace wherry::bench::file
