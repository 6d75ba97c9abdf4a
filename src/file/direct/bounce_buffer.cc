// SPDX-License-Identifier: Apache-2.0
#include "file/direct/bounce_buffer.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace wherry::file {
namespace {

constinit std::atomic<std::byte*> spare{nullptr};

}  // namespace

BounceBuffer::BounceBuffer() : memory_(spare.exchange(nullptr)) {
  if (memory_ != nullptr) return;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(mapped);
}

BounceBuffer::~BounceBuffer() {
  if (std::byte* const other = spare.exchange(memory_)) ::munmap(other, kBytes);
}

bool BounceBuffer::fill(std::span<const std::byte> from) const {
  const iovec here{memory_, from.size()};
  const iovec there{const_cast<std::byte*>(from.data()), from.size()};
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(from.size());
}

bool BounceBuffer::copy_to(std::span<std::byte> to) const {
  const iovec here{memory_, to.size()};
  const iovec there{to.data(), to.size()};
  return ::process_vm_writev(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(to.size());
}

}  // namespace wherry::file
