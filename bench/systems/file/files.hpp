// SPDX-License-Identifier: Apache-2.0
// The files of a sample, as this program makes and checks them: by the kernel's calls, past Wherry and FUSE.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/systems/file/job.hpp"

namespace wherry::bench::file {

/// A new folder below another one, gone at the end, or once another is made there if this process was killed.
/// Everything throws std::system_error, and the others std::runtime_error where they say so.
class Files {
 public:
  explicit Files(const std::filesystem::path& above);
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  /// The job's files exist, with its bytes, and are on the disk. Those that are there are left alone.
  void prepare(const Job& job) const;
  /// What a file system of FUSE has cached of the job's files is too old from now on: they were changed, though no byte
  /// is another one. Returns when that was so long ago that caches may trust the files again.
  static void touch(const Job& job);
  /// The kernel has none of their pages. Throws std::runtime_error where it keeps them.
  static void evict(const Job& job);
  /// What was written to them is on the disk.
  static void flush(const Job& job);
  /// Throws std::runtime_error if a byte is not what the job's check should have written.
  static void compare(const Job& job);

 private:
  std::filesystem::path folder_;
};

/// The file of one of the job's processes.
std::string path_of(const Job& job, std::uint32_t process);

}  // namespace wherry::bench::file
