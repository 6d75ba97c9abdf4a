// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace wherry::tools {

/// The prefix of names that only collectors use, in every directory.
inline constexpr std::string_view kStagingPrefix = ".wherry-partial.";

/// A directory with a random name, for this collector only. It stages files on file systems without unnamed files, and
/// files that replace others. A lock on a file in it shows other collectors that it is in use. That works across
/// containers, and across hosts if the file system's locks do (not FUSE without flock, nor NFS mounted with
/// local_lock).
class Staging {
 public:
  /// Makes the staging directory in the directory open as `top`, which must stay open. Throws Refusal.
  explicit Staging(int top);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Removes the directory with its content.
  ~Staging();

  [[nodiscard]] int get() const { return directory_.get(); }
  /// Returns an unused name in the directory. May be called from any thread.
  std::string new_name();

  /// Removes the staging directories of this user's dead collectors in `top`. Their locks ended with them.
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
