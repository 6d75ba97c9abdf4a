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

/// A file that has no name yet. If it is destroyed before `give_name` succeeded, it leaves no trace. If this process
/// dies, the kernel removes an unnamed file, and the next collector removes a file in a staging directory.
class PendingFile {
 public:
  /// Throws Refusal.
  PendingFile(Destination& destination, Place place);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();

  /// Throws Refusal (a full disk, a file size limit, ...).
  void write(std::span<const std::byte> bytes, std::uint64_t offset);

  /// Sets the length, mode and time. No write may follow. Throws Refusal.
  void complete(std::uint64_t length, std::uint32_t mode, timespec mtime);

  [[nodiscard]] FileSystem& file_system() const { return *place_.directory->file_system; }

  /// Call it after the file system was flushed: throws Refusal if this file did not reach the disk.
  /// @param flush_error  the result of FileSystem::flush
  void check_flushed(int flush_error);

  /// Gives the file its name, and replaces a file or symbolic link of that name. Throws Refusal on failure, also for an
  /// error that the file system reports at a close.
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
  Staging* staging_ = nullptr;  // the staging directory in which it has a name; null: none
  std::string staged_;          // that name
  std::uint64_t end_ = 0;
  std::uint64_t written_back_ = 0;  // write-back to the disk was started up to this offset
};

}  // namespace wherry::tools
