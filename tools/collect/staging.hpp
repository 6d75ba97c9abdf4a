// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace wherry::tools {

/// Names that begin so are the collectors' own, in every directory.
inline constexpr std::string_view kStagingPrefix = ".wherry-partial.";

/// Where files wait for their names that cannot wait without one: a directory with a random name, for this collector
/// alone. A lock on a file in it tells other collectors that it is in use: in other containers too, and on other hosts
/// if the file system's locks reach them (not those of FUSE without flock, nor of NFS mounted with local_lock).
class Staging {
 public:
  /// Makes the directory in the one open as `top`, which must stay open. Throws Refusal.
  explicit Staging(int top);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Removes it with what is still in it.
  ~Staging();

  [[nodiscard]] int get() const { return directory_.get(); }
  /// A name in it that is not used yet. From any thread.
  std::string new_name();

  /// Removes what dead collectors of this user left in `top`: their locks have ended with them.
  static void remove_stale(int top);

 private:
  bool make();
  [[nodiscard]] bool own() const;

  int top_;
  std::string name_;
  UniqueFd directory_;
  UniqueFd lock_;
  std::atomic<std::uint64_t> names_ = 0;
};

}  // namespace wherry::tools
