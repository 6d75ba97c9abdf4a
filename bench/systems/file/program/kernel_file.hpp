// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wherry::bench::file {

/// A file as any program has it. Calls return what the kernel does.
class KernelFile {
 public:
  /// Throws std::system_error.
  KernelFile(const std::string& path, bool writes);
  KernelFile(const KernelFile&) = delete;
  KernelFile& operator=(const KernelFile&) = delete;
  ~KernelFile();

  /// Brings the beginning of the file into the page cache, by the kernel. Does nothing for a file without one.
  void load(std::uint64_t bytes);
  /// To the beginning.
  void rewind();
  ssize_t read(std::span<std::byte> to);
  ssize_t write(std::span<const std::byte> from);
  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to);
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws std::system_error.
  void flush();

 private:
  std::string path_;
  int file_;
};

}  // namespace wherry::bench::file
