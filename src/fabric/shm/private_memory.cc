// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/private_memory.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace wherry::fabric::shm {
namespace {

/// 0 where the kernel has no random numbers: then nobody recognises this process.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  return ::getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number ? number : 0;
}

/// The system calls themselves: a sanitizer's wrappers would take the peer's address for one of this process.
std::size_t process_vm(long call, pid_t peer, void* local, std::size_t bytes, std::uint64_t address) {
  const iovec here{local, bytes};
  const iovec there{reinterpret_cast<void*>(address), bytes};
  const long n = ::syscall(call, peer, &here, 1UL, &there, 1UL, 0UL);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

bool lives(int pidfd) {
  pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 0;
}

}  // namespace

layout::Recognition recognition() {
  static const std::uint64_t number = random_number();
  return {.address = reinterpret_cast<std::uint64_t>(&number), .number = number};
}

PrivateMemory::PrivateMemory(pid_t peer, const layout::Recognition& shown)
    : owner_(::getpid()), peer_(peer), shown_(shown) {}

PrivateMemory::~PrivateMemory() {
  if (const int pidfd = pidfd_.load(std::memory_order_relaxed); pidfd >= 0) ::close(pidfd);
}

bool PrivateMemory::reachable() {
  if (::getpid() != owner_) return false;
  int pidfd = pidfd_.load(std::memory_order_acquire);
  if (pidfd == kUnknown) {
    const int found = recognise();
    if (pidfd_.compare_exchange_strong(pidfd, found, std::memory_order_acq_rel)) {
      pidfd = found;
    } else if (found >= 0) {
      ::close(found);  // The other direction's thread was first.
    }
  }
  return pidfd >= 0 && lives(pidfd);
}

int PrivateMemory::recognise() const {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, peer_, 0U)));
  if (!pidfd.valid()) return kRefused;
  // Whoever has this process number now is asked, and can be nobody else as long as the pidfd says that it lives.
  const layout::Recognition shown = shown_;
  std::uint64_t number = 0;
  const std::size_t n = process_vm(SYS_process_vm_readv, peer_, &number, sizeof number, shown.address);
  const bool recognised = n == sizeof number && number == shown.number && number != 0;
  return recognised && lives(pidfd.get()) ? pidfd.release() : kRefused;
}

std::size_t PrivateMemory::read(std::span<std::byte> destination, std::uint64_t address) const {
  return process_vm(SYS_process_vm_readv, peer_, destination.data(), destination.size(), address);
}

std::size_t PrivateMemory::write(std::uint64_t address, std::span<const std::byte> source) const {
  return process_vm(SYS_process_vm_writev, peer_, const_cast<std::byte*>(source.data()), source.size(), address);
}

}  // namespace wherry::fabric::shm
