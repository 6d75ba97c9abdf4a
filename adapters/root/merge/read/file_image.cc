// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/file_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cerrno>
#include <system_error>

#include "base/unique_fd.hpp"

namespace wherry::merge {

FileImage::FileImage(const std::string& path) {
  const UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!descriptor.valid() || ::fstat(descriptor.get(), &status) != 0) {
    throw std::system_error(errno, std::system_category(), path);
  }
  size_ = static_cast<std::size_t>(status.st_size);
  memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (memory_ == MAP_FAILED) throw std::system_error(errno, std::system_category(), path);
  ::madvise(memory_, size_, MADV_SEQUENTIAL);
}

FileImage::~FileImage() { ::munmap(memory_, size_); }

}  // namespace wherry::merge
