// SPDX-License-Identifier: Apache-2.0
#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <wherry/error.hpp>

#include "base/refused_call.hpp"
#include "base/resize.hpp"

namespace wherry::memory {
namespace {

constexpr int kSharedSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

[[noreturn]] void fail_to_share(int error, const char* what, const std::string& advice) {
  throw Error(error, what, "", advice);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : memfd_(::memfd_create("wherry.pool", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!memfd_.valid()) fail_to_share(errno, "share memory", advice_on(errno, "memfd_create"));
  if (bytes == 0 || bytes > kMostBytes || bytes % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) != 0) {
    fail_to_share(EINVAL, "share memory", "its size is a multiple of the page size, at most 1 TiB");
  }
  if (resize(memfd_.get(), bytes) != 0) {
    fail_to_share(errno, "size shared memory", advice_for_resize(errno, "ask for less"));
  }
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0);
  if (start == MAP_FAILED) {
    fail_to_share(errno, "map shared memory", "ask for less, or raise the address space limit (ulimit -v)");
  }
  bytes_ = {static_cast<std::byte*>(start), bytes};
  // After this side's mapping, which stays writable: F_SEAL_FUTURE_WRITE applies to later mappings only.
  if (::fcntl(memfd_.get(), F_ADD_SEALS, kSharedSeals) != 0) {
    const int error = errno;
    ::munmap(start, bytes);
    fail_to_share(error, "seal shared memory", "the kernel must support memfd seals");
  }
}

SharedMemory::~SharedMemory() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace wherry::memory
