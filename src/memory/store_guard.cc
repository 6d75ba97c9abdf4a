// SPDX-License-Identifier: Apache-2.0
#include "memory/store_guard.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace wherry::memory {
namespace {

constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;

// Older headers lack some of these.
constexpr int kUserModeOnly = 1;
constexpr std::uint64_t kProtectsUnpopulated = std::uint64_t{1} << 13;
constexpr unsigned long kNew = _IO(0xAA, 0x00);

UniqueFd open_for_all() {
  UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, kFlags)));
  if (faults.valid()) return faults;
  const UniqueFd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (device.valid()) faults.reset(::ioctl(device.get(), kNew, kFlags));
  return faults;
}

bool agree(int faults, std::uint64_t features) {
  uffdio_api api{.api = UFFD_API, .features = features, .ioctls = 0};
  return ::ioctl(faults, UFFDIO_API, &api) == 0;
}

uffdio_range range_of(std::span<const std::byte> pages) {
  return {.start = std::bit_cast<std::uint64_t>(pages.data()), .len = pages.size()};
}

/// Populates the pages for reading: untouched pages become zero pages.
bool bring_in(std::span<const std::byte> pages) {
  int result = 0;
  do {
    result = ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0;
}

bool protect(int faults, std::span<const std::byte> pages) {
  uffdio_writeprotect wanted{.range = range_of(pages), .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  int result = 0;
  do {
    result = ::ioctl(faults, UFFDIO_WRITEPROTECT, &wanted);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0;
}

}  // namespace

StoreGuard::StoreGuard() noexcept : faults_(open_for_all()), holds_kernel_(faults_.valid()) {
  if (!faults_.valid()) faults_.reset(static_cast<int>(::syscall(SYS_userfaultfd, kFlags | kUserModeOnly)));
  if (!faults_.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) shortage_ = errno;
    return;
  }
  marks_ = agree(faults_.get(), kProtectsUnpopulated | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  const bool brings_in = ::madvise(nullptr, 0, MADV_POPULATE_READ) == 0;  // Linux 5.14
  if (marks_ || (brings_in && agree(faults_.get(), UFFD_FEATURE_PAGEFAULT_FLAG_WP))) return;
  faults_.reset();
  holds_kernel_ = false;
}

StoreGuard::Words StoreGuard::own_words() noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto error = reinterpret_cast<std::uintptr_t>(&errno);
  auto sequences = error;
#if __has_include(<sys/rseq.h>)
#if defined(__x86_64__)
  const auto thread = static_cast<std::uintptr_t>(::pthread_self());
#else
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#endif
  if (__rseq_size != 0) sequences = thread + static_cast<std::uintptr_t>(__rseq_offset);
#endif
  return {.start = std::min(error, sequences) / page * page, .end = (std::max(error, sequences) / page + 1) * page};
}

int StoreGuard::hold(std::span<const std::byte> pages) const noexcept {
  if (!works()) return ENOSYS;
  const auto start = std::bit_cast<std::uintptr_t>(pages.data());
  if (const Words own = own_words(); start < own.end && own.start < start + pages.size()) return EDEADLK;
  uffdio_register wanted{.range = range_of(pages), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  if (::ioctl(faults_.get(), UFFDIO_REGISTER, &wanted) != 0) return errno;
  if ((marks_ || bring_in(pages)) && protect(faults_.get(), pages)) return 0;
  release(pages);
  return EFAULT;
}

void StoreGuard::release(std::span<const std::byte> pages) const noexcept {
  uffdio_range range = range_of(pages);
  ::ioctl(faults_.get(), UFFDIO_UNREGISTER, &range);  // has an effect only if the pages were not exchanged
  ::ioctl(faults_.get(), UFFDIO_WAKE, &range);
}

}  // namespace wherry::memory
