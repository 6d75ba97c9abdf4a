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

/// A checked path, split into the directory and the last component.
struct Place {
  OpenDirectories::Directory directory;
  std::string name;
};

/// The directory that contains all stored files; one for all shippers. Threads: any call from any thread.
class Destination {
 public:
  /// Opens `path`, and creates it if it is missing. Removes the leftovers of dead collectors there. Throws
  /// wherry::Error.
  Destination(std::string path, bool durable);
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Begins a session: modes and times of directories stay open until it ends.
  void shipper_came() { directories_.enter(); }
  /// Ends a session. After the last one, sets the mode and time of all directories. Returns the failures.
  std::vector<Failure> shipper_left();

  /// Makes the directory `path`, which will get this mode and time in the end. Returns its parent directory. Throws
  /// Refusal.
  OpenDirectories::Directory make_directory(std::string_view path, std::uint32_t mode, timespec mtime);
  /// Checks `path`, and opens its parent directory. Throws Refusal.
  Place place(std::string_view path);
  /// Waits until the names in `path` have reached the disk; empty: those in the destination itself. Returns 0 or an
  /// errno value.
  [[nodiscard]] int flush_directory(std::string_view path) const;

  /// False: files get their names before they have reached the disk.
  [[nodiscard]] bool durable() const { return durable_; }

  /// True if at least most_pending_files_ open files have no name yet: some of them should get their names now.
  [[nodiscard]] bool has_too_many_pending_files() const {
    return pending_files_.load(std::memory_order_relaxed) >= most_pending_files_;
  }
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
