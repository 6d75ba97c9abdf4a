// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::tools {

/// A path, and why it failed.
struct Failure {
  std::string path;
  std::string error;
};

/// The final modes and times of directories.
///
/// They cannot be set when a directory is made. A file stored later changes the directory's time, and a mode without
/// write permission prevents it. So they are set when no shipper is left that could store anything, deepest first. The
/// latest ones are remembered, and set again after a later shipper has stored something there. If an existing directory
/// denies access to its owner, the owner gets access meanwhile, as with rsync.
///
/// Threads: any call from any thread.
class Directories {
 public:
  /// Opens a directory below the destination by path. Invalid on failure, with errno set.
  using Open = std::function<UniqueFd(std::string_view path)>;
  /// Called for each directory that has got its mode and time. Returns 0 or an errno value.
  using Settled = std::function<int(int descriptor)>;

  /// Begins a session: no directory is settled until it ends.
  void enter();
  /// Ends a session. After the last one, settles all directories and returns the failures.
  std::vector<Failure> leave(const Open& open, const Settled& settled);

  /// Sets the final mode and time of `path`.
  void announce(std::string_view path, std::uint32_t mode, timespec mtime);
  /// Prepares `path`, which is open as `descriptor` (also with O_PATH), for storing an entry. Its time will be set
  /// again. If its mode was settled, or if this process may not store in it, the owner gets all permissions until it is
  /// settled. Its mode then is the announced one, or else the one found here. If that change is not permitted, the call
  /// that stores reports the error.
  void touch(std::string_view path, int descriptor);

 private:
  struct Wanted {
    mode_t mode;
    timespec mtime;  // UTIME_OMIT: not announced
  };

  // The number of settled directories that are remembered. A remembered directory is settled again after a later store.
  static constexpr std::size_t kRemembered = 1 << 16;

  // Ordered by path: in reverse order, the content of a directory comes before the directory.
  using ByPath = std::map<std::string, Wanted, std::less<>>;

  std::mutex mutex_;
  int shippers_ = 0;
  ByPath wanted_;   // to be settled
  ByPath settled_;  // no path is in both
};

}  // namespace wherry::tools
