// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/process_memory.hpp"

#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>

#include "base/found_once.hpp"
#include "base/wiped_on_fork.hpp"

namespace wherry::fabric::shm {
namespace {

/// Returns the word that contains this process's number. Null if it could not be made: then no peer recognizes this
/// process.
std::atomic<std::uint64_t>* place() {
  static constinit FoundOnce<std::atomic<std::uint64_t>*> place;
  return place.get(make_word_wiped_on_fork);
}

/// Returns this process's number. 0 if it has none, as in a forked child until its first recognition().
std::uint64_t own_number() { return place() == nullptr ? 0 : place()->load(std::memory_order_relaxed); }

/// Calls the kernel directly: the wrappers of a sanitizer would take the peer's address for one of this process.
std::size_t process_vm(long call, pid_t peer, void* local, std::size_t bytes, std::uint64_t address) {
  const iovec here{local, bytes};
  const iovec there{std::bit_cast<void*>(address), bytes};
  const long n = ::syscall(call, peer, &here, 1UL, &there, 1UL, 0UL);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

layout::Recognition recognition() {
  std::uint64_t number = own_number();
  if (place() != nullptr && number == 0) {
    std::uint64_t fresh = 0;
    if (::getrandom(&fresh, sizeof fresh, GRND_NONBLOCK) != sizeof fresh) fresh = 0;
    // Another thread may have been first; its number is then used.
    if (place()->compare_exchange_strong(number, fresh, std::memory_order_relaxed)) number = fresh;
  }
  return {.address = reinterpret_cast<std::uint64_t>(place()), .number = number};
}

ShmPrivateMemory::ShmPrivateMemory(pid_t peer, const layout::Recognition& shown)
    : peer_(peer), shown_(shown), owner_(own_number()) {}

bool ShmPrivateMemory::reachable() {
  if (owner_ == 0 || own_number() != owner_) return false;
  const Answer answer = answer_.load(std::memory_order_relaxed);
  return answer == Answer::unknown ? recognise() : answer == Answer::yes;
}

bool ShmPrivateMemory::recognise() {
  std::uint64_t number = 0;
  const std::size_t n = process_vm(SYS_process_vm_readv, peer_, &number, sizeof number, shown_.address);
  const bool recognised = n == sizeof number && number == shown_.number && number != 0;
  if (!recognised) answer_.store(Answer::no, std::memory_order_relaxed);
  Answer unknown = Answer::unknown;
  if (recognised) answer_.compare_exchange_strong(unknown, Answer::yes, std::memory_order_relaxed);
  return recognised;
}

std::size_t ShmPrivateMemory::read(std::span<std::byte> destination, std::uint64_t address) {
  return process_vm(SYS_process_vm_readv, peer_, destination.data(), destination.size(), address);
}

std::size_t ShmPrivateMemory::write(std::uint64_t address, std::span<const std::byte> source) {
  return process_vm(SYS_process_vm_writev, peer_, const_cast<std::byte*>(source.data()), source.size(), address);
}

}  // namespace wherry::fabric::shm
