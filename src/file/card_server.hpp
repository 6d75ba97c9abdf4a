// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "file/cache.hpp"
#include "file/fault_point.hpp"
#include "file/server.hpp"

namespace wherry::file {

/// The part of a card's process that serves reads to the card's other processes (the path `os`): a Server of all files
/// that this user may read, through the card's cache. It opens nothing to write: a file that it has not closed yet
/// can be executed, and its file system be mounted to be read only. Where it listens stands in the
/// segment as long as it lives. Its threads sleep while nothing is asked.
class CardServer {
 public:
  /// Of the segment at `path`. Throws Error if it cannot be attached, and as Server.
  explicit CardServer(const std::string& path, AtFaultPoint at = {});
  CardServer(const CardServer&) = delete;
  CardServer& operator=(const CardServer&) = delete;
  /// Clients go on by themselves.
  ~CardServer();

  [[nodiscard]] const Cache& cache() const { return cache_; }

 private:
  Cache cache_;
  std::optional<Server> server_;
  std::thread thread_;
};

}  // namespace wherry::file
