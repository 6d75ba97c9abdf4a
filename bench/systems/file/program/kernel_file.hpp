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

/// The same with an offset of its own: only pread and pwrite go past a mount.
class PositionedFile {
 public:
  PositionedFile(const std::string& path, bool writes) : file_(path, writes) {}

  void rewind() { offset_ = 0; }
  ssize_t read(std::span<std::byte> to) { return advance(read_at(offset_, to)); }
  ssize_t write(std::span<const std::byte> from) { return advance(write_at(offset_, from)); }
  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to) { return file_.read_at(offset, to); }
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from) { return file_.write_at(offset, from); }
  void flush() { file_.flush(); }

 private:
  ssize_t advance(ssize_t moved) {
    if (moved > 0) offset_ += static_cast<std::uint64_t>(moved);
    return moved;
  }

  KernelFile file_;
  std::uint64_t offset_ = 0;
};

}  // namespace wherry::bench::file
