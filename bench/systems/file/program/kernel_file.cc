// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/kernel_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace wherry::bench::file {

KernelFile::KernelFile(const std::string& path, bool writes)
    : path_(path), file_(::open(path.c_str(), (writes ? O_WRONLY : O_RDONLY) | O_CLOEXEC)) {
  if (file_ < 0) throw std::system_error(errno, std::system_category(), "open " + path);
}

KernelFile::~KernelFile() { ::close(file_); }

void KernelFile::load(std::uint64_t bytes) {
  // A read might go another way.
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file_, 0);
  if (mapped == MAP_FAILED && errno == ENODEV) return;
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap " + path_);
  ::munmap(mapped, bytes);
}

void KernelFile::rewind() { ::lseek(file_, 0, SEEK_SET); }
ssize_t KernelFile::read(std::span<std::byte> to) { return ::read(file_, to.data(), to.size()); }
ssize_t KernelFile::write(std::span<const std::byte> from) { return ::write(file_, from.data(), from.size()); }

ssize_t KernelFile::read_at(std::uint64_t offset, std::span<std::byte> to) {
  return ::pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
}

ssize_t KernelFile::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  return ::pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset));
}

void KernelFile::flush() {
  if (::fsync(file_) != 0) throw std::system_error(errno, std::system_category(), "fsync " + path_);
}

}  // namespace wherry::bench::file
