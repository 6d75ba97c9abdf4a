// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "collect/directories.hpp"
#include "collect/open_directories.hpp"

namespace wherry::tools {

/// A checked path, split where it has its last name.
struct Place {
  OpenDirectories::Directory directory;
  std::string name;
};

/// The directory that everything is stored below; one for all shippers. All calls from any thread.
class Destination {
 public:
  /// Opens `path`, making it if it is missing. Throws wherry::Error. Removes what dead collectors left in its staging
  /// directory.
  explicit Destination(std::string path);
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  ~Destination();

  [[nodiscard]] const std::string& path() const { return path_; }

  /// A shipper came: modes and times of directories are left open until it left.
  void shipper_came() { directories_.enter(); }
  /// A shipper left. If it was the last, gives all directories their mode and time; returns what failed.
  std::vector<Failure> shipper_left();

  /// Makes the directory `path`, which will have this mode and time in the end. Throws Refusal.
  void make_directory(std::string_view path, std::uint32_t mode, timespec mtime);
  /// Checks `path`, and opens the directory that it lies in. Throws Refusal.
  Place place(std::string_view path);

  /// False once an unnamed temporary file (O_TMPFILE) proved impossible here.
  [[nodiscard]] bool unnamed_files() const { return unnamed_files_.load(std::memory_order_relaxed); }
  void no_unnamed_files() { unnamed_files_.store(false, std::memory_order_relaxed); }

  /// Where files wait for their name when they cannot wait without one. Made when first needed. Throws Refusal.
  int staging();
  /// A name in the staging directory that no living process uses.
  std::string staging_name();

 private:
  OpenDirectories::Directory enter(std::string_view path);
  void remove_stale();

  std::string path_;
  OpenDirectories open_;
  Directories directories_;
  std::atomic<bool> unnamed_files_ = true;
  std::atomic<std::uint64_t> names_ = 0;
  std::mutex staging_mutex_;
  UniqueFd staging_;
};

}  // namespace wherry::tools
