// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/api_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <system_error>

namespace wherry::bench::file {
namespace {

/// As the C library's calls have it.
ssize_t result_of(const Result& result) {
  if (result.bytes > 0 || result.error == 0) return static_cast<ssize_t>(result.bytes);
  errno = result.error;
  return -1;
}

}  // namespace

ApiFile::ApiFile(const std::string& name, bool writes, files::Path path)
    : file_(files::open(name, writes ? O_WRONLY : O_RDONLY, 0, {.path = path})) {}

ssize_t ApiFile::read_at(std::uint64_t offset, std::span<std::byte> to) { return result_of(file_.pread(to, offset)); }

ssize_t ApiFile::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  return result_of(file_.pwrite(from, offset));
}

void ApiFile::flush() {
  const Result result = file_.sync();
  if (result.error != 0) throw std::system_error(result.error, std::system_category(), "fsync");
}

}  // namespace wherry::bench::file
