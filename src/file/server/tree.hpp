// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace wherry::file {

/// A directory and everything below it. No call reaches anything else: the kernel resolves every path by openat2 with
/// RESOLVE_BENEATH. Neither "..", an absolute name, a symbolic link nor a concurrent rename leads out (EXDEV). Names
/// are paths relative to the directory, without a zero byte; "." is the directory. File systems mounted below it belong
/// to it.
///
/// Functions that return int return 0 or an errno value; those that return a UniqueFd return an invalid one and set
/// errno. Thread-safe. Calls block as long as the file system does.
class Tree {
 public:
  /// Opens the directory. Throws Error: ENOENT (also if /proc is not mounted), ENOTDIR, EACCES, ENOSYS (a kernel or
  /// sandbox without openat2).
  explicit Tree(const std::string& directory);
  /// @param directory  an O_PATH descriptor of the directory
  explicit Tree(UniqueFd directory) : root_(std::move(directory)) {}

  /// An O_PATH descriptor.
  [[nodiscard]] int descriptor() const { return root_.get(); }

  /// As open(2) with these flags. Refuses anything but files and directories with EOPNOTSUPP, without opening it:
  /// resolves the name with O_PATH, checks the type, and then opens the same file through /proc.
  [[nodiscard]] UniqueFd open(const std::string& name, int flags, mode_t mode) const;
  /// Returns an O_PATH descriptor: for status, modes and times. `follow`: also a symbolic link in the last component.
  [[nodiscard]] UniqueFd look_up(const std::string& name, bool follow) const;

  int make_directory(const std::string& name, mode_t mode) const;
  /// `mode`: includes the type, a FIFO or a socket. EPERM for devices.
  int make_node(const std::string& name, mode_t mode) const;
  int remove(const std::string& name, bool directory) const;
  /// `flags`: of renameat2.
  int rename(const std::string& from, const std::string& to, unsigned flags) const;
  int link(const std::string& from, const std::string& to) const;
  int symlink(const std::string& name, const std::string& target) const;
  int read_link(const std::string& name, std::string& target) const;

 private:
  /// The parent directory of a name, and its last component.
  struct Place {
    UniqueFd parent;
    std::string last;
    int error = 0;
  };
  [[nodiscard]] UniqueFd open_named(int named, const std::string& name, int flags) const;
  [[nodiscard]] UniqueFd resolve(const std::string& name, std::uint64_t flags, std::uint64_t mode) const;
  [[nodiscard]] Place place_of(std::string_view name, bool directory) const;

  UniqueFd root_;
};

/// Change what a descriptor refers to, also an O_PATH descriptor of look_up. They return 0 or an errno value.
int change_mode(int descriptor, mode_t mode);
/// -1 leaves the user or the group unchanged.
int change_owner(int descriptor, uid_t user, gid_t group);
int change_times(int descriptor, const timespec (&times)[2]);

}  // namespace wherry::file
