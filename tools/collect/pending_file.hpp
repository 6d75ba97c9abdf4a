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

/// A file that has no name yet. Destroyed before `give_name` succeeded, it leaves nothing behind; if this process dies,
/// the kernel removes it (an unnamed file), or the next collector does (a file in a staging directory).
class PendingFile {
 public:
  /// Throws Refusal.
  PendingFile(Destination& destination, Place place);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();

  /// Throws Refusal (a full disk, a file size limit, ...).
  void write(std::span<const std::byte> bytes, std::uint64_t offset);

  /// Gives it its length, mode and time. Nothing is written afterwards. Throws Refusal.
  void complete(std::uint64_t length, std::uint32_t mode, timespec mtime);

  [[nodiscard]] FileSystem& file_system() const { return *place_.directory->file_system; }

  /// After the file system was flushed: throws Refusal if this file did not reach the disk.
  /// @param flush_error  what FileSystem::flush returned
  void check_flushed(int flush_error);

  /// Gives it its name, replacing a file or symbolic link that had it. Throws Refusal: that, or what the file system
  /// has to say at a close.
  void give_name();

 private:
  void open_unnamed();
  void open_staged();
  void start_writing_back();
  void check_close();
  void rename_staged();

  Destination& destination_;
  Place place_;
  UniqueFd file_;
  Staging* staging_ = nullptr;  // where it has a name already; null: nowhere
  std::string staged_;          // that name
  std::uint64_t end_ = 0;
  std::uint64_t written_back_ = 0;  // up to here the kernel was told to write to the disk
};

}  // namespace wherry::tools
