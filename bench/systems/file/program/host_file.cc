// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/host_file.hpp"

#include <cerrno>
#include <system_error>

namespace wherry::bench::file {
namespace {

void check(int error, const std::string& what) {
  if (error != 0) throw std::system_error(error, std::system_category(), what);
}

/// As the C library's calls have it.
ssize_t result_of(const Result& result) {
  if (result.bytes > 0 || result.error == 0) return static_cast<ssize_t>(result.bytes);
  errno = result.error;
  return -1;
}

}  // namespace

HostFile::HostFile(const std::string& address, const std::string& name, bool writes) : host_({.address = address}) {
  const auto opened = host_.open(name, writes ? layout::kFileOpenWrite : layout::kFileOpenRead);
  check(opened.error, "open " + name);
  file_ = opened.handle;
}

ssize_t HostFile::read_at(std::uint64_t offset, std::span<std::byte> to) {
  return result_of(host_.read(file_, offset, to));
}

ssize_t HostFile::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  return result_of(host_.write(file_, offset, from));
}

void HostFile::flush() { check(host_.flush(file_), "fsync"); }

ssize_t HostFile::advance(ssize_t moved) {
  if (moved > 0) offset_ += static_cast<std::uint64_t>(moved);
  return moved;
}

}  // namespace wherry::bench::file
