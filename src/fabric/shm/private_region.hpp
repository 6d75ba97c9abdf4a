// SPDX-License-Identifier: Apache-2.0
// Exposed memory of the peer that is not in its arena.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "fabric/private_memory.hpp"
#include "memory/region.hpp"

namespace wherry::fabric::shm {

/// Exposed memory that the peer could not move into its arena. It is accessed by its address with a kernel copy, if the
/// kernel allows that.
class PrivateRegion final : public memory::RemoteRegion {
 public:
  PrivateRegion(PrivateMemory& memory, std::uint64_t address) : memory_(memory), address_(address) {}

  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    return memory_.recognise() && memory_.write(address_ + offset, source) == source.size();
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    return memory_.recognise() && memory_.read(destination, address_ + offset) == destination.size();
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // SIGNAL: orders the kernel's store below after the puts
    return put(offset, std::as_bytes(std::span(&value, 1)));
  }

 private:
  PrivateMemory& memory_;
  const std::uint64_t address_;
};

}  // namespace wherry::fabric::shm
