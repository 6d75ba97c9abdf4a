// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <wherry/files.hpp>

namespace wherry::bench::file {

/// A file opened by wherry::files. Calls return what the kernel's do.
class ApiFile {
 public:
  /// `name`: a path of this machine, or wherry://NODE:PORT/... Throws wherry::Error.
  ApiFile(const std::string& name, bool writes, files::Path path);

  void rewind() { offset_ = 0; }
  ssize_t read(std::span<std::byte> to) { return advance(read_at(offset_, to)); }
  ssize_t write(std::span<const std::byte> from) { return advance(write_at(offset_, from)); }
  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to);
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws std::system_error.
  void flush();

 private:
  ssize_t advance(ssize_t moved);

  files::File file_;
  std::uint64_t offset_ = 0;
};

}  // namespace wherry::bench::file
