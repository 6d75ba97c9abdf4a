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

  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to);
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws std::system_error.
  void flush();

 private:
  files::File file_;
};

}  // namespace wherry::bench::file
