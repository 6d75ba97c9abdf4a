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

/// A path and why it could not be done.
struct Failure {
  std::string path;
  std::string error;
};

/// The modes and times that directories shall have in the end. They cannot be set when a directory is made: a file
/// stored in it later changes its time, and may not be stored at all if its mode forbids writing. So they are set when
/// no shipper is left that could store something, deepest first; the latest are remembered, and set again after a
/// later shipper has stored something there. A directory that was there before and denies its owner access is opened to
/// the owner meanwhile, as rsync does. All calls from any thread.
class Directories {
 public:
  /// Opens a directory below the destination by path; invalid when that fails, with errno set.
  using Open = std::function<UniqueFd(std::string_view path)>;
  /// Is given each directory that has its mode and time now; returns 0, or why that failed.
  using Settled = std::function<int(int descriptor)>;

  /// A shipper came: nothing is settled until it left.
  void enter();
  /// A shipper left. If it was the last, settles everything and returns what failed.
  std::vector<Failure> leave(const Open& open, const Settled& settled);

  /// `path` shall have this mode and time.
  void announce(std::string_view path, std::uint32_t mode, timespec mtime);
  /// Something is about to be stored in `path`, which is open as `descriptor` (O_PATH will do). Its time will be set
  /// again. If its mode was settled, or if this process may not store in it, the owner gets all permissions until the
  /// directory is settled; its mode then is the announced one, or else the one found here. If that is not permitted,
  /// the call that stores reports why.
  void touch(std::string_view path, int descriptor);

 private:
  struct Wanted {
    mode_t mode;
    timespec mtime;  // UTIME_OMIT: not announced
  };

  // Settled directories that are remembered: one that is stored in later is settled again.
  static constexpr std::size_t kRemembered = 1 << 16;

  // Ordered by path: walked backwards, what is inside a directory comes before the directory.
  using ByPath = std::map<std::string, Wanted, std::less<>>;

  std::mutex mutex_;
  int shippers_ = 0;
  ByPath wanted_;   // to be settled
  ByPath settled_;  // no path is in both
};

}  // namespace wherry::tools
