// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "collect/directories.hpp"
#include "collect/refusal.hpp"

namespace wherry::tools {

/// The directory that everything is stored below; one for all shippers.
class Destination {
 public:
  /// Opens `path`, making it if it is missing. Throws wherry::Error. Removes what dead collectors left in its staging
  /// directory.
  explicit Destination(std::string path);
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  ~Destination();

  [[nodiscard]] int descriptor() const { return root_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Directories& directories() { return directories_; }

  /// Opens the directory `path` below this one, never through a symbolic link. Invalid with errno set if it fails.
  [[nodiscard]] UniqueFd open_existing(std::string_view path) const;

  /// False once an unnamed temporary file (O_TMPFILE) proved impossible here.
  [[nodiscard]] bool unnamed_files() const { return unnamed_files_.load(std::memory_order_relaxed); }
  void no_unnamed_files() { unnamed_files_.store(false, std::memory_order_relaxed); }

  /// Where files wait for their name when they cannot wait without one. Made when first needed. Throws Refusal.
  int staging();
  /// A name in the staging directory that no living process uses.
  std::string staging_name();

  /// The staging directory's name; a shipper may not use it.
  static constexpr std::string_view kStaging = ".wherry-partial";

 private:
  void remove_stale();

  std::string path_;
  UniqueFd root_;
  Directories directories_;
  std::atomic<bool> unnamed_files_ = true;
  std::atomic<std::uint64_t> names_ = 0;
  std::mutex staging_mutex_;
  UniqueFd staging_;
};

/// Throws Refusal unless `path` is a plain relative path: no empty, "." or ".." component, no NUL, nothing absolute,
/// not the staging directory.
void check_path(std::string_view path);

/// Walks below the destination on behalf of one shipper, never through a symbolic link, and remembers where it was
/// last: most files lie in the directory of the file before them.
class Walker {
 public:
  explicit Walker(Destination& destination) : destination_(destination) {}

  /// The directory `path` (empty: the destination itself); makes what is missing. The descriptor stays open until the
  /// next call. Throws Refusal. `path` must have passed check_path.
  int enter(std::string_view path);

  /// A checked path, split where it has its last name.
  struct Place {
    int directory;
    std::string name;
  };
  /// Checks `path` and enters its parent directory. Throws Refusal.
  Place parent_of(std::string_view path);

 private:
  Destination& destination_;
  std::string path_;
  UniqueFd directory_;
};

}  // namespace wherry::tools
