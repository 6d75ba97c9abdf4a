// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace wherry::file {

/// A directory and what is below it. No call reaches anything else: every path is resolved by the kernel's openat2 with
/// RESOLVE_BENEATH, so that neither "..", an absolute name or a symbolic link, nor a rename at the same moment leads
/// out (EXDEV). Names are paths relative to the directory, without a zero byte; "." is the directory itself. Other file
/// systems that are mounted below belong to it.
///
/// Functions that return int return 0 or an errno value; those that return a UniqueFd return an invalid one with errno
/// set. All calls from any thread; they block as long as the file system does.
class Tree {
 public:
  /// Opens the directory. Throws Error: ENOENT (also if /proc is not mounted), ENOTDIR, EACCES, ENOSYS (a kernel or
  /// sandbox without openat2).
  explicit Tree(const std::string& directory);
  /// @param directory  a descriptor that names it, open with O_PATH
  explicit Tree(UniqueFd directory) : root_(std::move(directory)) {}

  /// It names the directory only.
  [[nodiscard]] int descriptor() const { return root_.get(); }

  /// As open(2) with these flags. Anything but a file or a directory is refused with EOPNOTSUPP and is not opened: the
  /// name is resolved with O_PATH, the type is checked, and then the same file is opened through /proc.
  [[nodiscard]] UniqueFd open(const std::string& name, int flags, mode_t mode) const;
  /// Names the object only (O_PATH): for status, modes and times. The last component's symbolic link is followed, or
  /// not.
  [[nodiscard]] UniqueFd look_up(const std::string& name, bool follow) const;

  int make_directory(const std::string& name, mode_t mode) const;
  /// `mode`: a FIFO's or a socket's, with its type. Devices are not made.
  int make_node(const std::string& name, mode_t mode) const;
  int remove(const std::string& name, bool directory) const;
  /// `flags` as renameat2's.
  int rename(const std::string& from, const std::string& to, unsigned flags) const;
  int link(const std::string& from, const std::string& to) const;
  int symlink(const std::string& name, const std::string& target) const;
  int read_link(const std::string& name, std::string& target) const;

 private:
  /// The directory that a name's last component is in.
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

/// Of what a descriptor of look_up's names, which may be of the kind that only names: 0 or an errno value.
int change_mode(int descriptor, mode_t mode);
/// A user or group of -1 stays as it is.
int change_owner(int descriptor, uid_t user, gid_t group);
int change_times(int descriptor, const timespec (&times)[2]);

}  // namespace wherry::file
