// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace wherry::file {

/// Orders the processes of a client, each of which replaces one that was killed. The server completes all requests of
/// an earlier process before it serves a later one. Otherwise a repeated request could be carried out before its first
/// attempt.
///
/// Thread-safe. Never blocks.
class ClientProcesses {
 public:
  /// One connection of a process, while the server serves it.
  class Member {
   public:
    Member(ClientProcesses& all, std::uint64_t client, std::uint64_t process) : all_(all), key_(client, process) {
      const std::lock_guard lock(all_.mutex_);
      ++all_.connections_[key_];
    }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member() {
      const std::lock_guard lock(all_.mutex_);
      if (const auto own = all_.connections_.find(key_); --own->second == 0) all_.connections_.erase(own);
    }
    /// Whether a connection of an earlier process of this client is still served.
    [[nodiscard]] bool has_earlier() const {
      const std::lock_guard lock(all_.mutex_);
      const auto first = all_.connections_.lower_bound({key_.first, 0});
      return first->first < key_;
    }

   private:
    ClientProcesses& all_;
    std::pair<std::uint64_t, std::uint64_t> key_;
  };

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> connections_;
};

}  // namespace wherry::file
