// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace wherry::file {

/// The processes of clients that follow one another, each in place of one that was killed. What an earlier one had sent
/// is done before a later one is served: a request that it repeats would be done before the first attempt otherwise.
///
/// Threads: any. Nothing blocks.
class ClientProcesses {
 public:
  /// A connection of a process, while it is served.
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
    /// Whether a connection of an earlier process of this client is served.
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
