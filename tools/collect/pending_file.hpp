// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>

#include "base/unique_fd.hpp"
#include "collect/destination.hpp"

namespace wherry::tools {

/// A file that has no name yet. Destroyed before `complete` succeeded, it leaves nothing behind; if this process dies,
/// the kernel removes it (an unnamed file), or the next collector does (a file in the staging directory).
class PendingFile {
 public:
  /// Throws Refusal.
  PendingFile(Destination& destination, Place place);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();

  /// Throws Refusal (a full disk, a file size limit, ...).
  void write(std::span<const std::byte> bytes, std::uint64_t offset);

  /// Gives it its length, mode and time, and then its name, replacing a file or symbolic link that had it.
  /// Throws Refusal.
  void complete(std::uint64_t length, std::uint32_t mode, timespec mtime);

 private:
  void open_unnamed();
  void open_staged();
  void give_name();
  void rename_staged();

  Destination& destination_;
  Place place_;
  UniqueFd file_;
  std::string staged_;  // name in the staging directory; empty: none
  std::uint64_t end_ = 0;
};

}  // namespace wherry::tools
