// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  /// Opens `path`, making it if it is missing. Throws wherry::Error. Removes what dead collectors left there.
  Destination(std::string path, bool durable);
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// A shipper came: modes and times of directories are left open until it left.
  void shipper_came() { directories_.enter(); }
  /// A shipper left. If it was the last, gives all directories their mode and time; returns what failed.
  std::vector<Failure> shipper_left();

  /// Makes the directory `path`, which will have this mode and time in the end, and returns the one that it lies in.
  /// Throws Refusal.
  OpenDirectories::Directory make_directory(std::string_view path, std::uint32_t mode, timespec mtime);
  /// Checks `path`, and opens the directory that it lies in. Throws Refusal.
  Place place(std::string_view path);
  /// Waits until the names in `path` have reached the disk; empty: the destination itself. Returns 0 or an errno value.
  [[nodiscard]] int flush_directory(std::string_view path) const;

  /// False: files get their names without having reached the disk.
  [[nodiscard]] bool durable() const { return durable_; }

  /// Counts the files that are open and have no name yet. So many are a reason to give some of them their names.
  [[nodiscard]] bool crowded() const { return pending_files_.load(std::memory_order_relaxed) >= most_pending_files_; }
  void pending_file_came() { pending_files_.fetch_add(1, std::memory_order_relaxed); }
  void pending_file_left() { pending_files_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  OpenDirectories::Directory enter(std::string_view path);

  std::string path_;
  bool durable_;
  std::int64_t most_pending_files_;
  std::atomic<std::int64_t> pending_files_ = 0;
  OpenDirectories open_;
  Directories directories_;
};

}  // namespace wherry::tools
