// SPDX-License-Identifier: Apache-2.0
// Exposed memory as load/store fabrics access it. May include: base, arch, layout.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "memory/arena_view.hpp"
#include "memory/region.hpp"

namespace wherry::memory {

/// Memory of an arena. This process maps it. If no more mappings are allowed, it reads and writes by the descriptor.
class ArenaRegion final : public RemoteRegion {
 public:
  ArenaRegion(std::shared_ptr<ArenaView> arena, std::uint64_t place, std::size_t bytes)
      : arena_(std::move(arena)), place_(place), bytes_(bytes) {}

  [[nodiscard]] std::byte* map() const override {
    if (!viewed_.load(std::memory_order_acquire)) make_view();  // VIEWED
    return range_.start;
  }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value) override;
  int map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where) override;

 private:
  void make_view() const;

  const std::shared_ptr<ArenaView> arena_;
  const std::uint64_t place_;
  const std::size_t bytes_;
  // The view is made at its first use. After map_at() none is needed, and its pages would count twice in this process's
  // memory.
  mutable std::atomic<bool> viewed_{false};
  mutable std::mutex viewing_;
  mutable ArenaView::Range range_;
};

/// Memory of this process by its address. It may be unmapped at any time.
class OwnRegion final : public RemoteRegion {
 public:
  explicit OwnRegion(std::uint64_t address) : address_(address) {}

  bool put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value) override;

 private:
  [[nodiscard]] std::byte* at(std::uint64_t offset) const;

  const std::uint64_t address_;
};

}  // namespace wherry::memory
