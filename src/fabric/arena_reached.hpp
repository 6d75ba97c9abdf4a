// SPDX-License-Identifier: Apache-2.0
// Exposed memory as load/store fabrics reach it. May include: base, arch, layout.
#pragma once

#include <memory>

#include "fabric/arena_view.hpp"
#include "fabric/exposed.hpp"

namespace wherry::fabric {

/// Memory of an arena that this process maps; or, where mappings have run out, reads and writes through its descriptor.
class ArenaReached final : public Reached {
 public:
  ArenaReached(std::shared_ptr<ArenaView> arena, std::uint64_t place, std::size_t bytes)
      : arena_(std::move(arena)), place_(place), range_(arena_->map(place, bytes)) {
    if (range_.start != nullptr) prepare_view(range_.start, bytes);
  }

  [[nodiscard]] std::byte* map() const override { return range_.start; }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value) override;
  int map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where) override;

 private:
  const std::shared_ptr<ArenaView> arena_;
  const std::uint64_t place_;
  const ArenaView::Range range_;
};

/// Memory of this process's own by its address, which may be gone at any time.
class OwnReached final : public Reached {
 public:
  explicit OwnReached(std::uint64_t address) : address_(address) {}

  bool put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value) override;

 private:
  [[nodiscard]] std::byte* at(std::uint64_t offset) const;

  const std::uint64_t address_;
};

}  // namespace wherry::fabric
